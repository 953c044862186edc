// All kernels in a table: nodes, launches, and times if there is a profile; the slowest first.

class KernelsPane {
  constructor({ model, selection }) {
    Object.assign(this, { model, selection });
    this.timed = model.kernels.some((kernel) => kernel.time);
    this.tools = [
      element("span", { class: "count" }, `${model.kernels.length} kernels${this.timed ? "" : "; times are shown if a profile is given"}`),
    ];
    const total = model.kernels.reduce((sum, kernel) => sum + (kernel.time ?? 0), 0);
    const order = model.kernels.map((_, n) => n).sort((a, b) => {
      const [one, other] = [model.kernels[a], model.kernels[b]];
      return (other.time ?? 0) - (one.time ?? 0) || other.launches.length - one.launches.length || a - b;
    });
    const heads = [...(this.timed ? ["time", "share"] : []), "launches", "kernel", "nodes"];
    this.rows = order.map((n) => this.row(n, total));
    this.root = element(
      "div",
      { class: "body" },
      element(
        "div",
        { class: "table" },
        element(
          "table",
          { "aria-label": "Kernels" },
          element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", { class: head === "time" || head === "launches" ? "number" : "", scope: "col" }, head)))),
          element("tbody", {}, ...this.rows),
        ),
      ),
    );
    this.listener = () => this.mark();
    selection.addEventListener("change", this.listener);
    this.mark();
  }

  close() {
    this.selection.removeEventListener("change", this.listener);
  }

  row(number, total) {
    const kernel = this.model.kernels[number];
    const choose = () => this.selection.select(this.model.sets[kernel.nodes], this, { kernel: number });
    const share = total ? (kernel.time ?? 0) / total : 0;
    const times = this.timed
      ? [
          element("td", { class: "number" }, kernel.time ? duration(kernel.time) : ""),
          element("td", {}, element("span", { class: "share", style: `width:${Math.round(share * 60)}px` }), `${(share * 100).toFixed(1)} %`),
        ]
      : [];
    return element(
      "tr",
      {
        tabindex: "0",
        "data-kernel": number,
        click: choose,
        keydown: (event) => {
          if (event.key === "Enter") choose();
        },
      },
      ...times,
      element("td", { class: "number" }, String(kernel.launches.length)),
      element("td", { class: "type" }, cut(kernel.symbol, 12)),
      element("td", {}, this.model.labels(kernel.launches[0] ?? [], 5)),
    );
  }

  mark() {
    for (const row of this.rows) {
      row.setAttribute("aria-selected", String(Number(row.dataset.kernel) === this.selection.kernel));
    }
  }
}
