// What is selected.  All views listen; whoever selects tells so, to be left where it is scrolled to.

class Selection extends EventTarget {
  constructor(model) {
    super();
    this.model = model;
    this.nodes = new Set();
    this.kernel = null; // number of the kernel whose code is shown
    this.line = null; // {kernel, stage, number}: a line of code that was clicked
    this.matches = new Set(); // nodes that the search has found
  }

  /** Select nodes; the kernel becomes one that computes the first of them, unless it does already. */
  select(nodes, from = null, { kernel = null, line = null } = {}) {
    this.nodes = new Set(nodes);
    this.line = line;
    if (kernel !== null) {
      this.kernel = kernel;
    } else if (this.nodes.size) {
      const candidates = [...this.nodes].flatMap((node) => this.model.kernelsOf[node]);
      if (!candidates.includes(this.kernel)) {
        const listed = candidates.filter((one) => this.model.kernels[one].section);
        this.kernel = listed.at(-1) ?? candidates.at(-1) ?? this.kernel;
      }
    }
    this.tell(from);
  }

  /** Nodes of a kernel's code as those of the group that is selected. */
  translated(nodes, kernel) {
    const launches = this.model.likeLaunches(kernel);
    const mine = launches.find((launch) => launch.some((node) => this.nodes.has(node)));
    return mine ? nodes.map((node) => mine[launches[0].indexOf(node)] ?? node) : nodes;
  }

  clear() {
    this.select([]);
  }

  showKernel(kernel, from = null) {
    this.kernel = kernel;
    this.line = null;
    this.tell(from);
  }

  found(nodes) {
    this.matches = new Set(nodes);
    this.dispatchEvent(new Event("matches"));
  }

  tell(from) {
    this.dispatchEvent(Object.assign(new Event("change"), { from }));
  }

  /**
   * For each set of nodes: 2 if all of it is selected, 1 if a part, 0 if nothing; subgraphs count with their node.
   * In the code of a kernel, nodes stand for those of the group that it was made for.
   */
  weights(kernel = null) {
    const selected = this.model.nodes.map(
      (_, node) => this.nodes.has(node) || this.model.owners(node).some((owner) => this.nodes.has(owner)),
    );
    if (kernel !== null) {
      const launches = this.model.likeLaunches(kernel);
      for (const launch of launches) {
        launch.forEach((node, position) => {
          if (selected[node]) selected[launches[0][position]] = true;
        });
      }
    }
    return this.model.sets.map((set) => {
      if (!set.some((node) => selected[node])) return 0;
      // What a function's node became names the call too: either of them is enough.
      const levels = [true, false].map((level) => set.filter((node) => this.model.inFunction[node] === level));
      return levels.some((level) => level.length && level.every((node) => selected[node])) ? 2 : 1;
    });
  }
}
