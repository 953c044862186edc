// Making elements.  Text goes in as text nodes only, so that a name of a model can never be markup.

/** An element with attributes (functions become listeners) and children (strings become text). */
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

function byId(id) {
  return document.getElementById(id);
}

/** The value of a colour or length of the style sheet; it changes with the colour scheme. */
function styled(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** A quiet colour that a name always has; a strong one for what is drawn small. */
function hue(name, strong = false) {
  let hash = 7;
  for (const char of name) hash = (hash * 31 + char.codePointAt(0)) % 360007;
  const [saturation, lightness] = strong ? ["55%", "55%"] : [styled("--saturation"), styled("--lightness")];
  return `hsl(${(hash * 137) % 360} ${saturation} ${lightness})`;
}

/** Fit a canvas to its place on the screen's own pixels; gives its context and size in CSS pixels. */
function fitted(canvas) {
  const { width, height } = canvas.getBoundingClientRect();
  const ratio = window.devicePixelRatio || 1;
  const [across, down] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== across || canvas.height !== down) [canvas.width, canvas.height] = [across, down];
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return { context, width, height };
}

/** Call a function once before the next frame, however often it is asked for. */
function oncePerFrame(draw) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      draw();
    });
  };
}

function whenSchemeChanges(call) {
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", call);
}

function cut(text, most) {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}

function bytes(size) {
  const units = ["bytes", "KB", "MB", "GB", "TB"];
  let unit = 0;
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return unit ? `${size.toFixed(1)} ${units[unit]}` : `${size} bytes`;
}

function percent(part) {
  return `${(part * 100).toFixed(1)} %`;
}

function duration(seconds) {
  if (seconds < 1e-3) return `${(seconds * 1e6).toPrecision(3)} µs`;
  return seconds < 1 ? `${(seconds * 1e3).toPrecision(3)} ms` : `${seconds.toPrecision(3)} s`;
}
