/**
 * The jobs of one lane. A job that waits for a reason of its own writer steps aside: only the later jobs of that writer wait behind it.
 * Every operation takes constant time, except for passing over the jobs that wait behind one that stepped aside.
 */
import { LinkedQueue, type Place } from './linked-queue.ts'

export interface LaneEntry {
  /** The order of entry. */
  readonly order: number
  readonly job: { readonly writer?: string | undefined }
}

export class Lane<Entry extends LaneEntry> {
  readonly #behind = new LinkedQueue<Entry>()
  readonly #counts = new Map<string | undefined, number>()
  /** The jobs that stepped aside, by their writers. */
  #aside: Map<string, Entry> | undefined
  /** The job that runs, is ready, or waits for a reason that holds the lane. */
  head: Entry | undefined

  constructor(head: Entry) {
    this.head = head
  }

  get isEmpty(): boolean {
    return !this.head && this.#behind.isEmpty && !this.#aside?.size
  }

  /** Adds a job behind all others. */
  push(entry: Entry): Place<Entry> {
    this.#count(entry, 1)
    return this.#behind.push(entry)
  }

  /** Removes a job that is behind others. */
  remove(place: Place<Entry>): void {
    this.#count(place.value, -1)
    this.#behind.remove(place)
  }

  /** Whether a job behind the head supersedes it. */
  supersedes({ writer }: LaneEntry['job']): boolean {
    return writer === undefined ? !this.#behind.isEmpty : this.#counts.has(writer) || this.#counts.has(undefined)
  }

  /** Whether a new job waits, because a job runs or is about to, or one of its writer stepped aside. */
  holdsUp(job: LaneEntry['job']): boolean {
    return this.head !== undefined || this.#isBehindAside(job) || this.#counts.has(undefined)
  }

  /** Moves the head aside. Returns false, and changes nothing, for a job without a writer: it is of every writer. */
  stepAside(): boolean {
    const writer = this.head?.job.writer
    if (!this.head || writer === undefined) return false
    this.#aside ??= new Map()
    this.#aside.set(writer, this.head)
    this.head = undefined
    return true
  }

  /** Forgets a job that stepped aside. */
  forgetAside({ job: { writer } }: Entry): void {
    if (writer !== undefined) this.#aside?.delete(writer)
  }

  /** Makes a job that stepped aside the head. Where another job is the head, puts it before the jobs that entered later, and returns its place. */
  rejoin(entry: Entry): Place<Entry> | undefined {
    const { writer } = entry.job
    if (writer === undefined || this.#aside?.get(writer) !== entry) return undefined
    this.forgetAside(entry)
    if (!this.head) {
      this.head = entry
      return undefined
    }
    this.#count(entry, 1)
    let next = this.#behind.firstPlace
    while (next && next.value.order < entry.order) next = next.after
    return this.#behind.insert(entry, next)
  }

  /** Makes the first job that waits behind none of its writer the head, and returns it. */
  advance(): Entry | undefined {
    for (let place = this.#behind.firstPlace; place; place = place.after) {
      if (!this.#isBehindAside(place.value.job)) {
        this.remove(place)
        this.head = place.value
        return this.head
      }
      // The jobs behind a job of every writer do not pass it.
      if (place.value.job.writer === undefined) break
    }
    this.head = undefined
    return undefined
  }

  /** Whether a job of its writer stepped aside. */
  #isBehindAside({ writer }: LaneEntry['job']): boolean {
    if (!this.#aside?.size) return false
    return writer === undefined || this.#aside.has(writer)
  }

  #count({ job: { writer } }: Entry, change: number): void {
    const next = (this.#counts.get(writer) ?? 0) + change
    if (next > 0) this.#counts.set(writer, next)
    else this.#counts.delete(writer)
  }
}
