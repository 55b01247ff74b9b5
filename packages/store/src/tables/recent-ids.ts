/**
 * The keys of recently stored messages. A platform repeats a message soon, so most repeats are recognized without the file. They are in one
 * block of memory, because texts in a set are long-lived objects: with them the garbage collector had 130 of 570 bytes more to keep for each
 * waiting message.
 */

/** A key is in one of these sets, each of which forgets its oldest key first. A power of two. */
const SETS = 2048
const KEYS_IN_SET = 8
/** A key is half of a SHA-256 digest, as four integers. No id has a key of zeros, which marks a free place. */
const INTEGERS = 4

export class RecentIds {
  /** Made with the first key. */
  #table: Int32Array | undefined
  /** The place of the oldest key of each set. */
  #oldest = new Uint8Array(0)

  has(key: Buffer): boolean {
    const table = this.#table
    if (!table) return false
    const first = key.readInt32LE(0)
    const start = (first & (SETS - 1)) * KEYS_IN_SET * INTEGERS
    const end = start + KEYS_IN_SET * INTEGERS
    for (let at = start; at < end; at += INTEGERS) {
      if (table[at] !== first) continue
      if (table[at + 1] === key.readInt32LE(4) && table[at + 2] === key.readInt32LE(8) && table[at + 3] === key.readInt32LE(12)) return true
    }
    return false
  }

  add(key: Buffer): void {
    if (this.has(key)) return
    if (!this.#table) {
      this.#table = new Int32Array(SETS * KEYS_IN_SET * INTEGERS)
      this.#oldest = new Uint8Array(SETS)
    }
    const set = key.readInt32LE(0) & (SETS - 1)
    const place = this.#oldest[set] ?? 0
    this.#oldest[set] = (place + 1) % KEYS_IN_SET
    const at = (set * KEYS_IN_SET + place) * INTEGERS
    for (let part = 0; part < INTEGERS; part++) this.#table[at + part] = key.readInt32LE(4 * part)
  }

  clear(): void {
    this.#table = undefined
  }
}
