/** What has arrived over a connection, to wait for. */
export class Inbox<T> {
  readonly all: T[] = []
  #wanted: { count: number; resolve: () => void }[] = []

  push(item: T): void {
    this.all.push(item)
    for (const { resolve } of this.#wanted.filter(({ count }) => this.all.length >= count)) resolve()
    this.#wanted = this.#wanted.filter(({ count }) => this.all.length < count)
  }

  /** The first `count` items, once they are there. */
  async first(count: number): Promise<T[]> {
    if (this.all.length < count) await new Promise<void>((resolve) => this.#wanted.push({ count, resolve }))
    return this.all.slice(0, count)
  }
}
