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
    const list = element("dl");
    const row = (name, ...parts) => list.append(element("dt", {}, name), element("dd", {}, ...parts));
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
    const scopes = model.scopes.filter((scope) => scope.owner === number);
    if (scopes.length) row("subgraphs", scopes.map((scope) => scope.title).join(", "));
    if (node.calls !== null) {
      const inside = model.nodes.flatMap((one, n) => (one.scope === node.calls && one.kind === "node" ? [n] : []));
      row("calls", `${model.scopes[node.calls].title}: `, ...this.links(inside));
    }
    if (node.scope) row("inside of", model.scopes[node.scope].title);
    const time = model.times?.nodes[number] ?? null;
    if (time !== null) row("time", `${duration(time)}, ${percent(time / model.times.seconds)} of a run`);
    if (node.kind === "node" && model.kernels.length) this.kernels(number, row);
    if (model.memory) this.fusion(number, row);
    const title = node.kind === "node" || node.kind === "constant" ? node.op : node.kind;
    const domain = node.domain ? `${node.domain} ` : "";
    return [element("h2", {}, `${domain}${title} `, element("span", { class: "quiet" }, node.name)), list];
  }

  kernels(number, row) {
    const kernels = this.model.kernelsOf[number];
    if (!kernels.length) row("kernels", "none: computed while compiling, or only another shape of the same memory");
    kernels.forEach((kernel, i) => {
      const { symbol, schedule, time } = this.model.kernels[kernel];
      const show = () => this.selection.showKernel(kernel);
      row(
        i ? "" : "kernels",
        element("button", { class: "link", type: "button", click: show }, cut(symbol, 14)),
        time ? ` ${duration(time.seconds)}` : "",
        element("span", { class: "quiet" }, ` ${schedule}`),
      );
    });
  }

  /** Why the node shares a kernel with its neighbours, or does not. */
  async fusion(number, row) {
    const { reasons, pairs } = await section("fusion");
    const { sets } = this.model;
    const within = (set) => sets[set].includes(number);
    const others = (set) => sets[set].filter((node) => node !== number);
    for (const [producer, before, consumer, after, fused, reason] of pairs) {
      if (!within(before) && !within(after)) continue;
      const its = others(within(before) ? after : before);
      const whose = its.length ? [within(before) ? "to " : "from ", ...this.links(its, 3), ": "] : [];
      const what = `${producer.replace("core.", "")} → ${consumer.replace("core.", "")}, `;
      row(fused ? "fused" : "not fused", ...whose, what, element("span", { class: "quiet" }, reasons[reason]));
    }
  }

  tensor(number) {
    const [name, type] = this.model.tensors[number];
    return [`${name || "(left out)"} `, element("span", { class: "type" }, type)];
  }
}
