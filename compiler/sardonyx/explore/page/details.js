// Everything about the selected node: tensors with types, where they come from and go to, kernels.

class Details {
  constructor(model, selection) {
    this.model = model;
    this.selection = selection;
    this.root = byId("details");
    selection.addEventListener("change", () => this.draw());
    this.draw();
  }

  draw() {
    const nodes = [...this.selection.nodes];
    this.root.scrollTop = 0;
    if (nodes.length === 1) this.root.replaceChildren(...this.one(nodes[0]));
    else if (nodes.length) this.root.replaceChildren(...this.several(nodes));
    else this.root.replaceChildren(element("span", { class: "quiet" }, "Nothing is selected: click a node, or a line of a pane."));
    byId("live").textContent = nodes.length ? `Selected: ${this.model.labels(nodes)}` : "";
  }

  link(number) {
    const go = (event) => {
      event.preventDefault();
      this.selection.select([number]);
    };
    return element("a", { class: "link", href: `#node=${encodeURIComponent(this.model.nodes[number].name)}`, click: go }, this.model.label(number));
  }

  links(numbers, most = 12) {
    const parts = numbers.slice(0, most).flatMap((number, i) => (i ? [", ", this.link(number)] : [this.link(number)]));
    return numbers.length > most ? [...parts, `, and ${numbers.length - most} others`] : parts;
  }

  several(nodes) {
    return [element("h2", {}, `${nodes.length} nodes`), element("div", {}, ...this.links(nodes, 60))];
  }

  one(number) {
    const { model } = this;
    const node = model.nodes[number];
    const rows = [];
    const row = (name, ...parts) => rows.push(element("dt", {}, name), element("dd", {}, ...parts));
    if (node.attributes) row("attributes", element("span", { class: "type" }, node.attributes));
    node.inputs.forEach((tensor, i) => {
      const producer = model.producer.get(tensor);
      const from = producer === undefined ? [] : [" from ", this.link(producer)];
      row(`input ${i}`, ...this.tensor(tensor), ...from);
    });
    node.outputs.forEach((tensor, i) => {
      const users = [...new Set(model.users[tensor])];
      row(`output ${i}`, ...this.tensor(tensor), ...(users.length ? [" to ", ...this.links(users)] : []));
    });
    const scopes = model.scopes.map((scope, n) => n).filter((n) => model.scopes[n].owner === number);
    if (scopes.length) row("subgraphs", scopes.map((n) => model.scopes[n].title).join(", "));
    if (node.calls !== null) {
      const inside = model.nodes.flatMap((one, n) => (one.scope === node.calls && one.kind === "node" ? [n] : []));
      row("calls", `${model.scopes[node.calls].title}: `, ...this.links(inside));
    }
    if (node.scope) row("inside of", model.scopes[node.scope].title);
    const kernels = model.kernelsOf[number].map((kernel, i) => [
      i ? ", " : "",
      element(
        "button",
        { class: "link", type: "button", click: () => this.selection.showKernel(kernel) },
        cut(model.kernels[kernel].symbol, 14),
      ),
      model.kernels[kernel].time ? ` (${duration(model.kernels[kernel].time.seconds)})` : "",
    ]);
    const time = model.times?.nodes[number] ?? null;
    if (time !== null) row("time", `${duration(time)}, ${percent(time / model.times.seconds)} of a run`);
    if (kernels.length) row("kernels", ...kernels.flat());
    else if (model.kernels.length && node.kind === "node") row("kernels", "none: computed while compiling, or only other shapes of the same memory");
    const title = node.kind === "node" || node.kind === "constant" ? node.op : node.kind;
    const domain = node.domain ? `${node.domain} ` : "";
    return [element("h2", {}, `${domain}${title} `, element("span", { class: "quiet" }, node.name)), element("dl", {}, ...rows)];
  }

  tensor(number) {
    const [name, type] = this.model.tensors[number];
    return [`${name || "(left out)"} `, element("span", { class: "type" }, type)];
  }
}
