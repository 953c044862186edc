// Colours of a line of IR or assembly: comments, strings, numbers, types, names of operations.

const TOKENS = new RegExp(
  [
    /(?<comment>\/\/.*$|^\s*[#;].*$|\s;.*$|\s# .*$)/,
    /(?<literal>"(?:[^"\\]|\\.)*"|(?<![\w%.$@…-])-?\d[\w.+]*)/,
    /(?<kind>\b(?:tensor|vector|index|float|double|half|bfloat|ptr|void|[fiu]\d+|bf16)\b|[!#]\w[\w.]*|<\d+ x \w+>)/,
    /(?<word>\b(?:onnx|core|loop)\.\w+|^\s*\t[a-z]\w*\b|\b(?:func|define|declare|call|br|ret|load|store)\b)/,
  ].map((part) => part.source).join("|"),
  "g",
);

const VALUE = /%[\w.$\/:-]{29,}/g; // the names of values that are shortened
let shortNames = true;

/** A text with long names of values cut to their ends, in which they differ. */
function shortened(text) {
  return shortNames ? text.replace(VALUE, (name) => `%…${name.slice(-24)}`) : text;
}

const CLASSES = { comment: "c", literal: "l", kind: "k", word: "w" };
const LONGEST = 600; // characters of a line that get colours

/** The nodes of a line of code. */
function coloured(text) {
  const parts = [];
  const head = text.slice(0, LONGEST);
  let end = 0;
  for (const match of head.matchAll(TOKENS)) {
    const name = Object.keys(CLASSES).find((key) => match.groups[key] !== undefined);
    if (match.index > end) parts.push(head.slice(end, match.index));
    parts.push(element("span", { class: CLASSES[name] }, match[0]));
    end = match.index + match[0].length;
  }
  parts.push(text.slice(end));
  return parts;
}
