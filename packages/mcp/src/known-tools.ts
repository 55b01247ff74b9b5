/**
 * The tools of one server as this machine knows them. The list is kept, so that a start of the daemon starts no server, and a server
 * that is down keeps its tools. Only an operator accepts a tool that changes or that is added later: until then the model sees the
 * definition that was accepted before, or no such tool.
 */
import { createHash } from 'node:crypto'
import { SerialQueue } from '@sluice/kit'
import type { KeyValue } from '@sluice/sdk'
import * as v from 'valibot'
import type { ServerConfig } from './config.ts'
import type { Definition } from './definition.ts'

/** The prompts and resources of a server. */
export interface Offers {
  readonly resources: boolean
  readonly prompts: boolean
}

const keptDefinition = v.object({
  name: v.string(),
  description: v.string(),
  inputSchema: v.record(v.string(), v.unknown()),
  readOnlyHint: v.boolean(),
  hash: v.string(),
})

const keptList = v.object({
  /** Identifies the program or address that the list is from. */
  source: v.string(),
  tools: v.array(keptDefinition),
  /** The last accepted definitions of tools whose present one is not accepted. */
  former: v.optional(v.array(keptDefinition), []),
  offers: v.object({ resources: v.boolean(), prompts: v.boolean() }),
  /** The accepted hash of each tool that was ever accepted. */
  accepted: v.record(v.string(), v.string()),
})

type KeptList = v.InferOutput<typeof keptList>

const CHANGES_MAX = 1000

export class KnownTools {
  readonly #keyValue: KeyValue
  readonly #key: string
  readonly #source: string
  /** Runs one change at a time, so that none is lost. */
  readonly #changes = new SerialQueue({ name: 'a change of the known tools', tasksMax: CHANGES_MAX })
  #kept: KeptList | undefined

  constructor(keyValue: KeyValue, name: string, config: ServerConfig) {
    this.#keyValue = keyValue
    this.#key = `server:${name}`
    this.#source = sourceOf(config)
  }

  /** Reads the kept list. A list of another program or address does not count. */
  async load(): Promise<void> {
    const read = v.safeParse(keptList, await this.#keyValue.get(this.#key))
    this.#kept = read.success && read.output.source === this.#source ? read.output : undefined
  }

  /** False until the server has listed its tools once. */
  get isKnown(): boolean {
    return this.#kept !== undefined
  }

  get tools(): readonly Definition[] {
    return this.#kept?.tools ?? []
  }

  get offers(): Offers {
    return this.#kept?.offers ?? { resources: false, prompts: false }
  }

  isAccepted({ name, hash }: Pick<Definition, 'name' | 'hash'>): boolean {
    const { accepted } = this.#kept ?? {}
    return accepted !== undefined && Object.hasOwn(accepted, name) && accepted[name] === hash
  }

  /** Returns the definition of a tool of the list that was accepted last: the present one or an earlier one. Undefined for a new tool. */
  acceptedOf(present: Definition): Definition | undefined {
    return this.isAccepted(present) ? present : this.#kept?.former.find(({ name }) => name === present.name)
  }

  /** Keeps a list. All tools of the first list are accepted, because the operator configured the server. Resolves to false when nothing changed. */
  update(tools: readonly Definition[], offers: Offers): Promise<boolean> {
    return this.#changes.run(async () => {
      const accepted = this.#kept?.accepted ?? hashes(tools)
      const known = new Map(this.tools.flatMap((tool) => this.acceptedOf(tool) ?? []).map((tool) => [tool.name, tool]))
      const former = tools.flatMap((tool) => (accepted[tool.name] === tool.hash ? [] : (known.get(tool.name) ?? [])))
      const next: KeptList = { source: this.#source, tools: [...tools], former, offers, accepted }
      if (JSON.stringify(next) === JSON.stringify(this.#kept)) return false
      await this.#keep(next)
      return true
    })
  }

  /** Accepts these definitions from now on. */
  accept(tools: readonly Pick<Definition, 'name' | 'hash'>[]): Promise<void> {
    return this.#changes.run(async () => {
      if (!this.#kept) return
      const accepted = { ...this.#kept.accepted, ...hashes(tools) }
      const isAccepted = ({ name, hash }: Definition): boolean => accepted[name] === hash
      const stillChanged = new Set(this.#kept.tools.filter((tool) => !isAccepted(tool)).map(({ name }) => name))
      await this.#keep({ ...this.#kept, former: this.#kept.former.filter(({ name }) => stillChanged.has(name)), accepted })
    })
  }

  forget(): Promise<void> {
    return this.#changes.run(async () => {
      await this.#keyValue.delete(this.#key)
      this.#kept = undefined
    })
  }

  async #keep(next: KeptList): Promise<void> {
    await this.#keyValue.set(this.#key, next)
    this.#kept = next
  }
}

const hashes = (tools: readonly Pick<Definition, 'name' | 'hash'>[]): Record<string, string> =>
  Object.fromEntries(tools.map(({ name, hash }) => [name, hash]))

/** Secrets are not part of it: another password does not make another server. */
const sourceOf = ({ command, args, url }: ServerConfig): string =>
  createHash('sha256')
    .update(JSON.stringify([command ?? null, args, url ?? null]))
    .digest('hex')
