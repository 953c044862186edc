// The data: compressed blocks in the page, unpacked when they are first looked at.

const unpacked = new Map();

/** A promise of a section's data. */
function section(name) {
  let found = unpacked.get(name);
  if (!found) {
    found = unpack(byId(`data-${name}`).textContent);
    unpacked.set(name, found);
  }
  return found;
}

async function unpack(text) {
  const packed = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

/** What is shown at once, with what follows from it: users of tensors, kernels of nodes. */
class Model {
  constructor(data) {
    Object.assign(this, data);
    this.users = this.tensors.map(() => []);
    this.producer = new Map();
    this.kernelsOf = this.nodes.map(() => []);
    this.nodes.forEach((node, number) => {
      for (const tensor of node.inputs) this.users[tensor].push(number);
      for (const tensor of node.outputs) this.producer.set(tensor, number);
    });
    this.kernels.forEach((kernel, number) => {
      for (const node of new Set(this.sets[kernel.nodes].flatMap((one) => [one, ...this.owners(one)]))) {
        this.kernelsOf[node].push(number);
      }
    });
    this.inFunction = this.nodes.map((_, number) => this.root(number) > 0);
    this.byName = new Map(this.nodes.map((node, number) => [node.name, number]).reverse());
  }

  /** The outermost graph that a node is in: 0, or that of a function. */
  root(number) {
    return this.nodes[this.owners(number).at(-1) ?? number].scope;
  }

  /** The nodes in whose subgraphs a node stands. */
  owners(number) {
    const { owner } = this.scopes[this.nodes[number].scope];
    return owner === null ? [] : [owner, ...this.owners(owner)];
  }

  /** What a kernel computes, in words; the entry point launches the others. */
  kernelLabel(kernel, most) {
    const [first] = this.kernels[kernel].launches;
    return first ? this.labels(first, most) : "the entry point";
  }

  /** The launches of a kernel whose nodes correspond, one by one, to those that its code was made for. */
  likeLaunches(kernel) {
    const { launches } = this.kernels[kernel];
    const operators = (launch) => launch.map((node) => this.nodes[node].op).join();
    return launches.filter((launch, n) => n === 0 || operators(launch) === operators(launches[0]));
  }

  /** A node in words: operator and name. */
  label(number) {
    const node = this.nodes[number];
    return node.name && node.name !== node.op ? `${node.op} ${node.name}` : node.op;
  }

  /** The same in little room: long names differ at their ends. */
  shortLabel(number) {
    const { op, name } = this.nodes[number];
    return name.length > 30 ? `${op} …${name.slice(-28)}` : this.label(number);
  }

  /** Some nodes in words. */
  labels(numbers, most = 4) {
    const shown = numbers.slice(0, most).map((number) => this.shortLabel(number));
    if (numbers.length > most) shown.push(`${numbers.length - most} more`);
    return shown.join(", ") || "no node";
  }

  /** The value of a formula (see memory.py) for values of the symbols. */
  value(formula, symbols) {
    if (typeof formula === "number") return formula;
    return formula.reduce((sum, [coefficient, ...atoms]) => {
      return sum + atoms.reduce((product, atom) => product * this.atom(atom, symbols), coefficient);
    }, 0);
  }

  atom(atom, symbols) {
    if (typeof atom === "string") return symbols.get(atom) ?? 1;
    const [a, b] = atom.slice(1).map((one) => this.value(one, symbols));
    switch (atom[0]) {
      case "floordiv": return b ? Math.floor(a / b) : 0;
      case "max": return Math.max(a, b);
      case "min": return Math.min(a, b);
      case "bcast": return a === 1 ? b : a;
      default: return 0;
    }
  }
}
