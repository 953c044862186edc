// Which part of the drawing is in view: moved by dragging, zoomed by wheel, fingers and keys.

class Camera {
  constructor(canvas, changed, tapped) {
    this.canvas = canvas;
    this.changed = changed;
    this.tapped = tapped;
    this.x = 0; // the point of the drawing in the middle of the canvas
    this.y = 0;
    this.scale = 1;
    this.pointers = new Map();
    this.moved = 0;
    canvas.addEventListener("pointerdown", (event) => this.down(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => this.up(event));
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
  }

  get size() {
    return [this.canvas.clientWidth, this.canvas.clientHeight];
  }

  /** A point of the canvas in the drawing, and back. */
  toDrawing(px, py) {
    const [width, height] = this.size;
    return [(px - width / 2) / this.scale + this.x, (py - height / 2) / this.scale + this.y];
  }

  toCanvas(x, y) {
    const [width, height] = this.size;
    return [(x - this.x) * this.scale + width / 2, (y - this.y) * this.scale + height / 2];
  }

  /** Left, top, right, bottom of what is in view. */
  get view() {
    const [width, height] = this.size;
    return [...this.toDrawing(0, 0), ...this.toDrawing(width, height)];
  }

  zoom(factor, px = this.size[0] / 2, py = this.size[1] / 2) {
    const [x, y] = this.toDrawing(px, py);
    this.scale = Math.min(3, Math.max(0.004, this.scale * factor));
    const [newX, newY] = this.toDrawing(px, py);
    this.x += x - newX;
    this.y += y - newY;
    this.changed();
  }

  shift(dx, dy) {
    this.x += dx / this.scale;
    this.y += dy / this.scale;
    this.changed();
  }

  /** Show a rectangle as a whole, but not larger than life. */
  show(x, y, width, height) {
    const [across, down] = this.size;
    this.scale = Math.min(1, (across - 40) / Math.max(1, width), (down - 40) / Math.max(1, height));
    this.scale = Math.max(this.scale, 0.004);
    [this.x, this.y] = [x + width / 2, y + height / 2];
    this.changed();
  }

  /** Go to a point, near enough to read what is there. */
  goTo(x, y, least = 0.55) {
    this.scale = Math.max(this.scale, least);
    [this.x, this.y] = [x, y];
    this.changed();
  }

  down(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
    if (this.pointers.size === 1) this.moved = 0;
  }

  move(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    const now = [event.offsetX, event.offsetY];
    const other = [...this.pointers].find(([id]) => id !== event.pointerId)?.[1];
    this.pointers.set(event.pointerId, now);
    this.moved += Math.hypot(now[0] - before[0], now[1] - before[1]);
    if (other) {
      const apart = (one) => Math.hypot(one[0] - other[0], one[1] - other[1]) || 1;
      this.zoom(apart(now) / apart(before), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
    } else {
      this.canvas.classList.toggle("moving", this.moved > 4);
      this.shift(before[0] - now[0], before[1] - now[1]);
    }
  }

  up(event) {
    if (!this.pointers.delete(event.pointerId)) return;
    this.canvas.classList.remove("moving");
    if (event.type === "pointerup" && this.moved <= 4) this.tapped(event.offsetX, event.offsetY, event.shiftKey);
  }

  wheel(event) {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 30 : 1;
    this.zoom(Math.exp(-event.deltaY * lines * (event.ctrlKey ? 0.01 : 0.0016)), event.offsetX, event.offsetY);
  }
}
