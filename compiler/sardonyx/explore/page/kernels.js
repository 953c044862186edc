// Tables: all kernels with their launches and times, and the times of all nodes; the slowest first.

/** A table of rows that can be chosen; a column is [head, whether it holds numbers]. */
class Table {
  constructor(label, columns) {
    this.columns = columns;
    this.body = element("tbody");
    const head = ([name, number]) => element("th", { class: number ? "number" : null, scope: "col" }, name);
    this.root = element(
      "div",
      { class: "table" },
      element("table", { "aria-label": label }, element("thead", {}, element("tr", {}, ...columns.map(head))), this.body),
    );
  }

  /** Add a row; `choose` is called for a click and for Enter. */
  add(cells, choose) {
    const row = element(
      "tr",
      {
        tabindex: "0",
        click: choose,
        keydown: (event) => {
          if (event.key === "Enter") choose();
        },
      },
      ...cells.map((cell, n) => element("td", { class: this.columns[n][1] ? "number" : null }, cell)),
    );
    this.body.append(row);
    return row;
  }
}

/** A bar as long as the part, and the part in percent. */
function share(part) {
  return element("span", {}, element("span", { class: "share", style: `width:${Math.round(part * 60)}px` }), percent(part));
}

class KernelsPane {
  constructor({ model, selection }) {
    Object.assign(this, { model, selection });
    const { times } = model;
    const note = times
      ? `${model.kernels.length} kernels; a run takes ${duration(times.seconds)} on ${times.threads} threads`
      : `${model.kernels.length} kernels; with --profile their times`;
    this.tools = [element("span", { class: "count" }, note)];
    const timed = [["time", true], ["share", false], ["of peak", true]];
    const columns = [...(times ? timed : []), ["launches", true], ["kernel", false], ["nodes", false]];
    this.table = new Table("Kernels", columns);
    this.root = element("div", { class: "body" }, this.table.root);
    const seconds = (n) => model.kernels[n].time?.seconds ?? 0;
    const count = (n) => model.kernels[n].launches.length;
    const order = model.kernels.map((_, n) => n).sort((a, b) => seconds(b) - seconds(a) || count(b) - count(a) || a - b);
    this.rows = new Map(order.map((n) => [n, this.row(n)]));
    this.listener = () => this.mark();
    selection.addEventListener("change", this.listener);
    this.mark();
  }

  close() {
    this.selection.removeEventListener("change", this.listener);
  }

  row(number) {
    const { model } = this;
    const { symbol, launches, nodes, time } = model.kernels[number];
    const measured = model.times
      ? [
          time ? duration(time.seconds) : "",
          time ? share(time.share) : "",
          time ? `${percent(time.share_of_peak)}${time.bound ? `, ${time.bound}` : ""}` : "",
        ]
      : [];
    const name = element("span", { class: "type", title: symbol }, cut(symbol, 12));
    const cells = [...measured, String(launches.length), name, model.labels(launches[0] ?? [], 5)];
    return this.table.add(cells, () => this.selection.select(model.sets[nodes], this, { kernel: number }));
  }

  mark() {
    for (const [number, row] of this.rows) row.setAttribute("aria-selected", String(number === this.selection.kernel));
  }
}

class TimesPane {
  constructor({ model, selection }) {
    Object.assign(this, { model, selection });
    const { nodes, seconds } = model.times;
    const order = nodes.flatMap((time, n) => (time === null ? [] : [n])).sort((a, b) => nodes[b] - nodes[a]);
    this.tools = [element("span", { class: "count" }, `${order.length} nodes; where they share kernels, an estimate`)];
    this.table = new Table("Times of nodes", [["time", true], ["share", false], ["node", false], ["makes", false]]);
    this.root = element("div", { class: "body" }, this.table.root);
    this.rows = new Map(
      order.map((n) => {
        const [, type] = model.tensors[model.nodes[n].outputs[0]] ?? ["", ""];
        const cells = [duration(nodes[n]), share(nodes[n] / seconds), model.label(n), element("span", { class: "type" }, type)];
        return [n, this.table.add(cells, () => selection.select([n], this))];
      }),
    );
    this.listener = (event) => this.mark(event.from);
    selection.addEventListener("change", this.listener);
    this.mark(null);
  }

  close() {
    this.selection.removeEventListener("change", this.listener);
  }

  mark(from) {
    for (const [number, row] of this.rows) {
      const chosen = this.selection.nodes.has(number);
      row.setAttribute("aria-selected", String(chosen));
      if (chosen && from !== this && this.selection.nodes.size === 1) row.scrollIntoView({ block: "nearest" });
    }
  }
}
