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
  return element("span", { class: "part" }, element("span", { class: "share", style: `width:${Math.round(part * 60)}px` }), percent(part));
}

class KernelsPane {
  constructor({ model, selection }) {
    Object.assign(this, { model, selection });
    const { times } = model;
    const note = times ? `a run takes ${duration(times.seconds)} on ${times.threads} threads` : "with --profile their times";
    this.tools = [element("span", { class: "count" }, note)];
    const timed = [["time", true], ["share", false], ["of peak", true]];
    const columns = [...(times ? timed : []), ["launches", true], ["nodes and kernel", false]];
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
    const { symbol, schedule, launches, nodes, time } = model.kernels[number];
    const measured = model.times
      ? [
          time ? duration(time.seconds) : "",
          time ? share(time.share) : "",
          time ? element("span", { title: time.bound && `bound by ${time.bound}` }, percent(time.share_of_peak)) : "",
        ]
      : [];
    const label = element(
      "div",
      { title: [symbol, schedule].filter(Boolean).join("\n") },
      model.kernelLabel(number, 5),
      element("div", { class: "type" }, symbol),
      schedule ? element("div", { class: "quiet" }, schedule) : null,
    );
    const cells = [...measured, String(launches.length), label];
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
    this.table = new Table("Times of nodes", [["time", true], ["share", false], ["node", false]]);
    this.root = element("div", { class: "body" }, this.table.root);
    this.rows = new Map(
      order.map((n) => {
        const name = element("span", { title: model.label(n) }, model.shortLabel(n));
        const cells = [duration(nodes[n]), share(nodes[n] / seconds), name];
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
