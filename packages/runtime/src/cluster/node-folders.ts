/** The folders that all nodes of a cluster must have in common, as this node sees them. */
import { basename, dirname, join } from 'node:path'
import { configuredAgents, type LoadedConfig } from '@sluice/config'
import { endsWithin } from '@sluice/kit'
import { type Clock, errorText, MAIN_AGENT, type NodeFolder } from '@sluice/sdk'
import type { Snapshot } from '../features/snapshot.ts'
import { sopSettings } from '../procedures/sop-settings.ts'
import { IDENTITY_FILES } from '../workspace/workspace-identity.ts'
import { type ChosenFiles, ContentDigest } from './content-digest.ts'
import { FolderMarks } from './folder-marks.ts'

/** A mount that has gone may not answer for minutes. */
const LOOK_MS_MAX = 10_000
/** A folder of thousands of files is read again only after this many times the duration of the last reading, so that it costs little. */
const PAUSE_FACTOR = 100

export interface NodeFoldersOptions {
  readonly node: string
  readonly dataDir: string
  readonly clock: Clock
  readonly config: () => LoadedConfig
  readonly snapshot: () => Pick<Snapshot, 'service'>
  /** Default: marks in the folders. */
  readonly marks?: Pick<FolderMarks, 'look' | 'leave'>
}

const UNKNOWN = { mark: null, seen: null, digest: null, isUsable: true, problem: null }

type Look = Omit<NodeFolder, 'name' | 'path'>

interface Place {
  readonly name: string
  readonly path: string
  look(): Promise<Look>
  /** Rises while a long look goes on. */
  steps?(): number
}

interface Copied {
  readonly digest: ContentDigest
  last?: Look
  /** When the folder is read again, by the monotonic clock. */
  nextMs: number
}

export class NodeFolders {
  readonly #options: NodeFoldersOptions
  readonly #marks: Pick<FolderMarks, 'look' | 'leave'>
  /** One for each folder, by its name. */
  readonly #copied = new Map<string, Copied>()
  readonly #last = new Map<string, NodeFolder>()
  /** The name of the folder whose look has not ended in time. */
  #hanging: string | undefined

  constructor(options: NodeFoldersOptions) {
    this.#options = options
    this.#marks = options.marks ?? new FolderMarks(options.node)
  }

  /**
   * Looks at one folder after the other, each for as long as something happens within 10 s. A folder on a mount that does not answer keeps one thread of the process
   * busy, so that no other folder is looked at until it answers: the last look at those counts. `others` are the names of the other nodes.
   * Never rejects.
   */
  async look(others: readonly string[]): Promise<NodeFolder[]> {
    const seen: NodeFolder[] = []
    for (const place of this.#places(others)) {
      const folder = this.#hanging === undefined ? await this.#lookAt(place) : this.#lastOf(place)
      this.#last.set(place.name, folder)
      seen.push(folder)
    }
    return seen
  }

  /** Deletes the marks of this node. Never rejects. */
  leave(): Promise<void> {
    return this.#marks.leave()
  }

  async #lookAt({ name, path, look, steps = () => 0 }: Place): Promise<NodeFolder> {
    const looking = look()
    for (let before = -1; steps() > before; ) {
      before = steps()
      if (await endsWithin(looking, LOOK_MS_MAX, this.#options.clock)) return { name, path, ...(await looking) }
    }
    this.#hanging = name
    void looking.then(() => {
      this.#hanging = undefined
    })
    return { name, path, ...UNKNOWN, isUsable: false, problem: `it does not answer within ${LOOK_MS_MAX / 1000} s` }
  }

  #lastOf({ name, path }: Place): NodeFolder {
    const last = this.#last.get(name)
    return last?.path === path ? last : { name, path, ...UNKNOWN }
  }

  #places(others: readonly string[]): Place[] {
    const { config, dataDir, snapshot } = this.#options
    const loaded = config()
    const skills = snapshot().service('skillFolders')?.()
    const [procedures] = sopSettings(loaded, dataDir).sources
    const marked = (name: string, path: string): Place => ({
      name,
      path,
      look: async () => {
        const marks = await this.#marks.look(path, others)
        return { ...marks, digest: null, isUsable: marks.seen !== null }
      },
    })
    return [
      ...[...configuredAgents(loaded, dataDir).values()].map(({ name, workspace }) =>
        marked(name === MAIN_AGENT ? 'workspace' : `workspace of ${name}`, workspace),
      ),
      marked('files', join(dataDir, 'files')),
      this.#copiedPlace('procedures', procedures.folder, [procedures.folder], PROCEDURE_FILES),
      ...(skills ? [this.#copiedPlace('skills', skills[0] === undefined ? join(dataDir, 'skills') : dirname(skills[0]), skills)] : []),
      this.#copiedPlace('identity files', join(dataDir, 'agents'), [join(dataDir, 'agents')], AGENT_FILES),
    ]
  }

  #copiedPlace(name: string, path: string, folders: readonly string[], chosen?: ChosenFiles): Place {
    const { clock } = this.#options
    const copied: Copied = this.#copied.get(name) ?? { digest: new ContentDigest(), nextMs: 0 }
    this.#copied.set(name, copied)
    // The root itself may have another name on each node.
    const digested = folders.map((folder) => ({ name: folder === path ? '' : basename(folder), path: folder }))
    const read = async (): Promise<Look> => {
      try {
        return { ...UNKNOWN, digest: await copied.digest.of(digested, chosen) }
      } catch (error) {
        return { ...UNKNOWN, problem: errorText(error) }
      }
    }
    const look = async (): Promise<Look> => {
      const startedMs = clock.monotonicMs()
      if (copied.last && startedMs < copied.nextMs) return copied.last
      copied.last = await read()
      const endedMs = clock.monotonicMs()
      copied.nextMs = endedMs + PAUSE_FACTOR * (endedMs - startedMs)
      return copied.last
    }
    return { name, path, look, steps: () => copied.digest.steps }
  }
}

const PROCEDURE_FILES: ChosenFiles = { counts: (file) => /^[^/]+\/SOP\.(?:toml|md)$/.test(file), depth: 1 }

const AGENT_FILES: ChosenFiles = {
  counts: (file) => {
    const [, name] = file.split('/')
    return IDENTITY_FILES.some((one) => one === name)
  },
  depth: 1,
}
