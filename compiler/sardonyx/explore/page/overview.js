// The whole graph, small, in a corner: where the view is, where the selected nodes are; a click goes there.

const OVERVIEW_WIDTH = 120;
const OVERVIEW_PART = 0.75; // of the height of the graph's view, at the most

class Overview {
  constructor(graph) {
    this.graph = graph;
    this.canvas = byId("overview");
    this.picture = document.createElement("canvas"); // without the frame that moves
    this.stale = true;
    const go = (event) => {
      if (event.type === "pointerdown") this.canvas.setPointerCapture(event.pointerId);
      if (!this.canvas.hasPointerCapture(event.pointerId)) return;
      const { camera } = graph;
      [camera.x, camera.y] = [event.offsetX / this.scale, event.offsetY / this.scale];
      graph.draw();
    };
    this.canvas.addEventListener("pointerdown", go);
    this.canvas.addEventListener("pointermove", go);
  }

  /** Draw the frame around what is in view; the nodes only if they have changed. */
  draw() {
    const [width, height] = this.graph.model.size;
    const { camera } = this.graph;
    const [left, top, right, bottom] = camera.view;
    const whole = left <= 0 && top <= 0 && right >= width && bottom >= height;
    this.canvas.hidden = whole || !width;
    if (this.canvas.hidden) return;
    const scale = Math.min(OVERVIEW_WIDTH / width, (camera.size[1] * OVERVIEW_PART) / height);
    if (scale !== this.scale) {
      this.scale = scale;
      this.canvas.style.width = `${Math.max(8, Math.ceil(width * scale))}px`;
      this.canvas.style.height = `${Math.max(8, Math.ceil(height * scale))}px`;
      this.stale = true;
    }
    const { context, width: across, height: down } = fitted(this.canvas);
    if (this.stale) this.drawNodes();
    context.clearRect(0, 0, across, down);
    context.drawImage(this.picture, 0, 0, across, down);
    context.strokeStyle = styled("--accent");
    context.lineWidth = 1.5;
    const visible = [Math.max(3, (right - left) * scale), Math.max(3, (bottom - top) * scale)];
    context.strokeRect(left * scale, top * scale, ...visible);
  }

  drawNodes() {
    this.stale = false;
    [this.picture.width, this.picture.height] = [this.canvas.width, this.canvas.height];
    const context = this.picture.getContext("2d");
    const unit = this.scale * (window.devicePixelRatio || 1);
    const { model, selection } = this.graph;
    const [width, height] = model.box.map((size) => Math.max(1, size * unit));
    const dot = (number, least) => {
      const [x, y] = this.graph.place(number);
      const [across, down] = [Math.max(width, least), Math.max(height, least)];
      context.fillRect(x * unit - across / 2, y * unit - down / 2, across, down);
    };
    for (const number of this.graph.drawn) {
      context.fillStyle = this.graph.colour(number, true);
      dot(number, 1);
    }
    context.fillStyle = styled("--accent");
    for (const number of [...selection.matches, ...selection.nodes]) if (this.graph.place(number)) dot(number, 5);
  }
}
