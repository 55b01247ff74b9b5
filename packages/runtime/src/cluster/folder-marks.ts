/**
 * Marks in folders that all nodes of a cluster must have in common: each node writes one, and looks for the others' marks. A mark changes
 * with each look, so that a copy of the folder differs from the folder itself. See docs/cluster.md#what-is-shared.
 */
import { randomUUID } from 'node:crypto'
import { mkdir, open, realpath, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { readInside } from '@sluice/kit'
import { errorText, type FolderMark, type NodeFolder } from '@sluice/sdk'

const MARK_BYTES_MAX = 128
const MARK_TEXT = /^(\S{1,64}) (\d{1,15})\n$/

export type SeenFolder = Pick<NodeFolder, 'mark' | 'seen' | 'problem'>

/** The marks of one process. */
export class FolderMarks {
  readonly #node: string
  readonly #id = randomUUID()
  /** How often the mark of a folder was written, by the path of the folder. */
  readonly #counts = new Map<string, number>()

  constructor(node: string) {
    this.#node = node
  }

  /**
   * Writes the mark of this node, and then reads the marks of `others`, the names of other nodes. A file system on the network answers the
   * second step with its present content, because the first one has changed the folder. The first look creates a missing folder. Never rejects.
   */
  async look(path: string, others: readonly string[]): Promise<SeenFolder> {
    let root: string
    try {
      if (!this.#counts.has(path)) await mkdir(path, { recursive: true, mode: 0o700 })
      root = await realpath(path)
    } catch (error) {
      return { mark: null, seen: null, problem: errorText(error) }
    }
    const mark = { id: this.#id, count: (this.#counts.get(path) ?? 0) + 1 }
    this.#counts.set(path, mark.count)
    const problem = await this.#write(root, mark).then(() => null, errorText)
    const seen: [string, FolderMark][] = []
    // One after the other: a mount that hangs keeps one thread busy, and not all.
    for (const node of others) {
      const found = await readMark(root, node)
      if (found) seen.push([node, found])
    }
    return { mark: problem === null ? mark : null, seen: Object.fromEntries(seen), problem }
  }

  /** Deletes the marks of this node, where that is possible. Never rejects. */
  async leave(): Promise<void> {
    for (const path of this.#counts.keys()) await rm(fileOf(path, this.#node), { force: true }).catch(() => undefined)
  }

  /** Commands of the agent can write to a workspace. A link that they put there is replaced and never followed. */
  async #write(root: string, { id, count }: FolderMark): Promise<void> {
    const part = join(root, `.sluice-part-${encodeURIComponent(this.#node)}`)
    await rm(part, { force: true })
    {
      await using file = await open(part, 'wx', 0o644)
      await file.writeFile(`${id} ${count}\n`)
    }
    await rename(part, fileOf(root, this.#node))
  }
}

const fileOf = (root: string, node: string): string => join(root, `.sluice-node-${encodeURIComponent(node)}`)

async function readMark(root: string, node: string): Promise<FolderMark | undefined> {
  const read = await readInside(root, fileOf(root, node), MARK_BYTES_MAX)
  const [, id, count] = ('text' in read && MARK_TEXT.exec(read.text)) || []
  return id === undefined ? undefined : { id, count: Number(count) }
}
