// The memory plan: time (steps of the program) from left to right, addresses upward, one rectangle a tensor.

class MemoryPane {
  constructor({ model, selection }) {
    Object.assign(this, { model, selection });
    this.plan = model.memory;
    this.values = new Map(this.plan.symbols.map((name) => [name, 16]));
    this.chunk = 0;
    this.canvas = element("canvas", {
      role: "img",
      "aria-label": "Memory plan: each rectangle is a tensor, from its first to its last use, at its address",
      pointermove: (event) => this.hover(event),
      click: (event) => this.click(event),
    });
    this.tip = element("div", { class: "tip" });
    this.chunks = element(
      "select",
      {
        "aria-label": "Arena",
        change: () => {
          this.chunk = Number(this.chunks.value);
          this.update();
        },
      },
      ...this.plan.chunks.map((_, n) => element("option", { value: n }, `arena ${n}`)),
    );
    this.tools = [
      ...(this.plan.chunks.length > 1 ? [this.chunks] : []),
      ...this.plan.symbols.map((name) => this.field(name)),
    ];
    this.root = element("div", { class: "body" }, element("div", { class: "plan" }, this.canvas), this.tip);
    this.draw = oncePerFrame(() => this.drawNow());
    this.listener = () => this.draw();
    selection.addEventListener("change", this.listener);
    this.resized = new ResizeObserver(() => this.draw());
    this.resized.observe(this.canvas);
    whenSchemeChanges(this.listener);
    this.update();
  }

  close() {
    this.selection.removeEventListener("change", this.listener);
    this.resized.disconnect();
  }

  field(name) {
    const input = element("input", {
      type: "number",
      min: 0,
      value: this.values.get(name),
      "aria-label": `Value of ${name}`,
      input: () => {
        this.values.set(name, Math.max(0, Math.floor(Number(input.value)) || 0));
        this.update();
      },
    });
    return element("label", {}, `${name} `, input);
  }

  update() {
    this.boxes = this.plan.allocations
      .filter((one) => one.chunk === this.chunk)
      .map((one) => ({
        ...one,
        from: this.model.value(one.offset, this.values),
        bytes: this.model.value(one.size, this.values),
        title: one.name || (one.nodes ? this.model.labels(this.model.sets[one.nodes], 2) : one.sizeText),
      }));
    this.total = Math.max(this.model.value(this.plan.chunks[this.chunk] ?? 0, this.values), 1);
    this.last = Math.max(1, ...this.boxes.map((one) => one.end));
    this.first = Math.min(this.last - 1, ...this.boxes.map((one) => one.start));
    const apart = this.boxes.reduce((sum, one) => sum + one.bytes, 0);
    const { weights } = this.plan;
    this.summary = this.boxes.length
      ? `${bytes(this.total)} for ${this.boxes.length} tensors, ${bytes(apart)} if nothing were shared; weights ${bytes(weights.bytes)} in ${weights.tensors} tensors`
      : `no tensor needs memory of its own here; weights ${bytes(weights.bytes)} in ${weights.tensors} tensors`;
    this.tip.textContent = this.summary;
    this.draw();
  }

  /** Left, top, width, height of a box on a canvas of this size. */
  rectangle(one, width, height) {
    const across = (width - 74) / (this.last + 1 - this.first);
    const up = (height - 40) / this.total;
    return [
      64 + (one.start - this.first) * across,
      height - 26 - (one.from + one.bytes) * up,
      Math.max(1, (one.end + 1 - one.start) * across),
      Math.max(1, one.bytes * up),
    ];
  }

  drawNow() {
    const { context, width, height } = fitted(this.canvas);
    context.clearRect(0, 0, width, height);
    const weights = this.selection.weights();
    const ink = styled("--ink");
    const accent = styled("--accent");
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    for (const one of this.boxes) {
      const [x, y, across, up] = this.rectangle(one, width, height);
      context.fillStyle = weights[one.nodes] ? accent : hue(one.title);
      context.fillRect(x, y, across, up);
      context.strokeStyle = one === this.above ? ink : styled("--edge");
      context.lineWidth = one === this.above ? 2 : 1;
      context.strokeRect(x, y, across, up);
      if (across > 60 && up > 13) {
        context.fillStyle = weights[one.nodes] ? styled("--panel") : ink;
        context.fillText(cut(one.title, Math.floor(across / 6.5)), x + 4, y + up / 2);
      }
    }
    context.fillStyle = styled("--soft");
    context.textAlign = "right";
    for (const part of [0, 0.5, 1]) {
      context.fillText(bytes(Math.round(this.total * part)).replace(" bytes", ""), 60, height - 26 - (height - 40) * part);
    }
    context.textAlign = "left";
    context.fillText(`step ${this.first}`, 64, height - 12);
    context.textAlign = "right";
    context.fillText(`step ${this.last}`, width - 10, height - 12);
    context.textAlign = "left";
  }

  at(event) {
    const { clientWidth, clientHeight } = this.canvas;
    return this.boxes.findLast((one) => {
      const [x, y, across, up] = this.rectangle(one, clientWidth, clientHeight);
      return event.offsetX >= x && event.offsetX <= x + across && event.offsetY >= y && event.offsetY <= y + up;
    });
  }

  hover(event) {
    const found = this.at(event);
    if (found === this.above) return;
    this.above = found;
    this.canvas.style.cursor = found ? "pointer" : "";
    this.tip.textContent = found
      ? `${found.title}: ${bytes(found.bytes)} (${found.sizeText}) at ${found.from.toLocaleString("en")}, steps ${found.start} to ${found.end}, of ${this.model.labels(this.model.sets[found.nodes])}`
      : this.summary;
    this.draw();
  }

  click(event) {
    const found = this.at(event);
    if (found) this.selection.select(this.model.sets[found.nodes], this);
  }
}
