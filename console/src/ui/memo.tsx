// A component that is drawn anew only if one of its properties is another: for the rows of long lists, most of which stay as
// they are when the list is scrolled or one of them changes.
import { Component, type ComponentType, type VNode } from "preact";

export function memo<P extends object>(draw: (props: P) => VNode): ComponentType<P> {
  return class extends Component<P> {
    override shouldComponentUpdate(next: P): boolean {
      const was = this.props as Record<string, unknown>;
      return Object.entries(next).some(([name, value]) => was[name] !== value) || Object.keys(was).length !== Object.keys(next).length;
    }

    override render() {
      return draw(this.props as P);
    }
  };
}
