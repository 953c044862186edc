// Panes of text: a stage of the whole model, or a stage of the kernel that is shown.

class StagePane {
  constructor(context, stage) {
    Object.assign(this, context); // model, selection
    this.stage = stage;
    this.sets = [];
    this.view = new LineView(stage.title, (number) => this.picked(number));
    this.kernels = element("select", { "aria-label": "Kernel", change: () => this.selection.showKernel(Number(this.kernels.value)) });
    this.query = element("input", {
      type: "search",
      placeholder: "find",
      "aria-label": `Find in ${stage.id}`,
      keydown: (event) => {
        if (event.key === "Enter") this.view.find(this.query.value, event.shiftKey ? -1 : 1);
      },
      input: () => {
        this.view.found = -1;
        if (this.query.value) this.view.find(this.query.value);
        else this.view.draw();
      },
    });
    this.count = element("span", { class: "count" });
    const step = (direction) => () => this.step(direction);
    this.tools = [
      ...(stage.kernel ? [this.kernels] : []),
      this.query,
      element("button", { type: "button", title: "The marked lines before", "aria-label": "The marked lines before", click: step(-1) }, "↑"),
      element("button", { type: "button", title: "The next marked lines", "aria-label": "The next marked lines", click: step(1) }, "↓"),
      this.count,
    ];
    this.message = element("div", { class: "message", hidden: true });
    this.root = element("div", { class: "body" }, this.message, this.view.root);
    this.listener = (event) => this.update(event.from);
    this.selection.addEventListener("change", this.listener);
    this.update(null);
  }

  close() {
    this.selection.removeEventListener("change", this.listener);
  }

  /** The name of the section shown, or null. */
  wanted() {
    if (!this.stage.kernel) return this.stage.section;
    return this.model.kernels[this.selection.kernel]?.section ?? null;
  }

  async update(from) {
    if (this.stage.kernel) this.listKernels();
    const name = this.wanted();
    if (name !== this.shown) {
      this.shown = name;
      const data = name && (await section(name));
      if (this.shown !== name) return; // another one has been chosen since
      const text = data && (this.stage.kernel ? data[this.stage.id] : data);
      this.links = (data && data.links) || null;
      this.sets = text ? text.sets : [];
      this.view.show(text ? text.text.split("\n") : []);
      this.message.hidden = Boolean(text);
      this.view.root.hidden = !text;
      if (!text) this.message.textContent = this.excuse();
    } else if (name) {
      await section(name);
    }
    this.mark(from);
  }

  excuse() {
    const { kernel } = this.selection;
    if (kernel === null) return "Select a node to see the code of its kernel.";
    return "This kernel was left out of the page: sardonyx explore was called with --node.";
  }

  listKernels() {
    const { model, selection } = this;
    const mine = [...new Set([...selection.nodes].flatMap((node) => model.kernelsOf[node]))];
    const others = model.kernels.map((_, n) => n).filter((n) => !mine.includes(n));
    const option = (n) => {
      const name = `${cut(model.kernels[n].symbol, 11)}  ${model.kernelLabel(n, 2)}`;
      return element("option", { value: n, selected: n === selection.kernel }, cut(name, 70));
    };
    const group = (label, members) => (members.length ? [element("optgroup", { label }, ...members.map(option))] : []);
    this.kernels.replaceChildren(...group("of the selected nodes", mine), ...group("all others", others));
    if (selection.kernel === null) this.kernels.selectedIndex = -1;
  }

  mark(from) {
    const weights = this.selection.weights(this.stage.kernel ? this.selection.kernel : null);
    const marks = this.sets.map((set) => ["", "weak", "strong"][weights[set]]);
    const linked = this.linkedLines();
    for (const number of linked) marks[number] = "linked";
    this.marks = marks;
    this.view.mark(marks);
    const strong = marks.filter((mark) => mark && mark !== "weak").length;
    const marked = strong || marks.filter(Boolean).length;
    const what = marked && !strong ? " in part" : "";
    this.count.textContent = marked ? `${marked.toLocaleString("en")} of ${marks.length.toLocaleString("en")} lines${what}` : "";
    if (from === this) return;
    const first = linked.length ? linked[0] : Math.max(marks.indexOf("strong"), marks.includes("strong") ? 0 : marks.indexOf("weak"));
    if (first >= 0) this.view.reveal(first);
  }

  /** The lines that belong to the line of the same kernel's code that was clicked. */
  linkedLines() {
    const { line } = this.selection;
    if (!line || !this.links || line.kernel !== this.selection.kernel || !this.stage.kernel) return [];
    const anchor = anchorOf(this.links, line.stage, line.number);
    if (anchor < 0) return [];
    return this.sets.flatMap((_, number) => (anchorOf(this.links, this.stage.id, number) === anchor ? [number] : []));
  }

  step(direction) {
    const starts = [];
    const strong = this.marks?.some((mark) => mark && mark !== "weak");
    const counts = (mark) => mark && (!strong || mark !== "weak");
    this.marks?.forEach((mark, number) => {
      if (counts(mark) && !counts(this.marks[number - 1])) starts.push(number);
    });
    if (!starts.length) return;
    const at = Math.round(this.view.scroller.scrollTop / LINE_HEIGHT + this.view.scroller.clientHeight / LINE_HEIGHT / 3);
    const next = direction > 0 ? starts.find((n) => n > at) ?? starts[0] : starts.findLast((n) => n < at) ?? starts.at(-1);
    this.view.scroller.scrollTop = next * LINE_HEIGHT - this.view.scroller.clientHeight / 3;
  }

  picked(number) {
    const nodes = this.model.sets[this.sets[number]];
    if (!this.stage.kernel) {
      this.selection.select(nodes, this);
      return;
    }
    const { kernel } = this.selection;
    const line = { kernel, stage: this.stage.id, number };
    this.selection.select(this.selection.translated(nodes, kernel), this, { line, kernel });
  }
}

/** The line of the loop level that a line of code stems from; -1 if none is known. */
function anchorOf(links, stage, number) {
  return stage === "loop" ? number : links[stage]?.[number] ?? -1;
}
