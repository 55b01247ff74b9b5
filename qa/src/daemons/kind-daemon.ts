/** Runs one daemon, as a process that tests kill, with every channel of the catalogue connected to its fake, and writes messages as people do. */
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Act, CrashKind, PostedRequest, WrittenMessage } from '@sluice/testkit/crash-kind'
import { type ModelRequest, type ModelServer, type ModelStep, startModelServer } from '@sluice/testkit/model-server'
import { CHANNELS } from '../channels.ts'
import { scratch } from './bundle.ts'
import { sectionToml } from './section-toml.ts'
import { type SourceDaemon, startSourceDaemon } from './source-daemon.ts'

/** The messages of one channel. */
export interface ChannelKind extends CrashKind {
  readonly name: string
}

/** The channels with messages that tests can write, by name. */
export const KIND_NAMES: readonly string[] = CHANNELS.flatMap(({ name, testing }) => (testing.crashKind ? [name] : []))

const PROGRAM = join(import.meta.dirname, 'every-channel.ts')
const WAIT_MS_MAX = 60_000
const POLL_MS = 25
/** The load must be zero this often in a row: a reply that moves between two queues may be counted in neither. */
const QUIET_POLLS = 4
const LOADS = ['turns_running', 'turns_queued', 'messages_pending', 'replies_pending']
/** Nostr tells the messages of a person apart by their text and second. */
const SAME_TEXT_MS = 1100

/** Tests write to all channels at the same time, and their turns may wait for each other. */
const SETTINGS = `[agent]
max_concurrent_turns = 64
[gateway]
require_pairing = false
webhook_rate_limit_per_minute = 0
[limits]
loop_turns = 0
turns_waiting = 0
waiting_mb = 0
[limits.strangers]
turns_per_hour = 0
turns_in_flight = 0
turns_waiting = 0
waiting_mb = 0
pool = { turns_per_hour = 0, turns_in_flight = 0, turns_waiting = 0 }
`

export interface KindDaemonOptions {
  /** The answer of the model to a request. Default: an answer that repeats the user's text. */
  answer?(request: ModelRequest): ModelStep | Promise<ModelStep>
  /** More of the configuration, as TOML. */
  readonly toml?: string
}

export interface WriteOptions {
  /** Default: the first sender of the kind. */
  readonly sender?: string
  /** The request of the message is not sent. Default: false. */
  readonly isHeld?: boolean
  /** The message in whose conversation it is. */
  readonly after?: WrittenMessage
}

/** A row of `/api/deliveries/inbox`. */
interface InboxRow {
  readonly number: number
  readonly state: string
}

export class KindDaemon {
  readonly kinds: readonly ChannelKind[]
  readonly model: ModelServer
  readonly #folder: ReturnType<typeof scratch>
  /** When each sender wrote each text. */
  readonly #wroteAtMs = new Map<string, number>()
  #daemon: SourceDaemon | undefined

  private constructor(kinds: readonly ChannelKind[], model: ModelServer, toml: string) {
    this.kinds = kinds
    this.model = model
    const provider = `[provider]\nkind = "openai"\nbase_url = "${model.url}/v1"\nmodel = "test"\n`
    const sections = kinds.map(({ name, section }) => sectionToml(name, section))
    this.#folder = scratch([SETTINGS, provider, toml, ...sections].join('\n'))
  }

  /** Starts the fakes, a model and the daemon. */
  static async start({ answer, toml = '' }: KindDaemonOptions = {}): Promise<KindDaemon> {
    const kinds = await Promise.all(
      CHANNELS.flatMap(({ name, testing }) => {
        const started = testing.crashKind?.()
        return started ? [started.then((kind) => ({ ...kind, name }))] : []
      }),
    )
    const daemon = new KindDaemon(kinds, await startModelServer({ apiKey: null, ...(answer && { answer }) }), toml)
    await daemon.up()
    return daemon
  }

  kind(name: string): ChannelKind {
    const found = this.kinds.find((kind) => kind.name === name)
    if (!found) throw new Error(`The channel "${name}" has no messages that a test can write.`)
    return found
  }

  get url(): string {
    return this.#daemon?.url ?? ''
  }

  get dataDir(): string {
    return this.#folder.dir
  }

  /** Starts the daemon, and waits until every channel is connected. */
  async up(): Promise<void> {
    this.#daemon = await startSourceDaemon(this.#folder.dir, PROGRAM)
    for (const { name, isReady } of this.kinds) await this.until(() => isReady?.() ?? true, `${name} is connected`)
  }

  /** Ends the daemon with SIGKILL. */
  async kill(): Promise<void> {
    await this.#daemon?.kill()
    this.#daemon = undefined
  }

  async stop(): Promise<void> {
    await this.kill()
    await Promise.all([this.model.close(), ...this.kinds.map(({ fake }) => fake.close())])
    this.#folder.dispose()
  }

  /** Delivers a request as the platform does, until the daemon accepts it. */
  async post({ path, headers, body }: PostedRequest): Promise<void> {
    await this.until(async () => {
      const response = await fetch(`${this.#daemon?.url}${path}`, { method: 'POST', headers, body })
      await response.arrayBuffer()
      if (response.status >= 400 && response.status < 500) throw new Error(`${path} was answered ${response.status}`)
      return response.ok
    })
  }

  /** Writes a message as a person. */
  async write(
    kind: ChannelKind,
    text: string,
    { sender = kind.senders[0], isHeld = false, after }: WriteOptions = {},
  ): Promise<WrittenMessage> {
    const key = `${kind.name} ${sender} ${text}`
    const restMs = (this.#wroteAtMs.get(key) ?? -SAME_TEXT_MS) + SAME_TEXT_MS - performance.now()
    if (restMs > 0) await sleep(restMs)
    this.#wroteAtMs.set(key, performance.now())
    const draft = { mark: randomUUID(), sender, text }
    const written = { ...draft, id: kind.write(draft, after) }
    if (!isHeld) await this.deliver(kind, written)
    return written
  }

  /** Delivers a message, perhaps once more. */
  async deliver(kind: ChannelKind, written: WrittenMessage): Promise<void> {
    if (kind.request) await this.post(kind.request([written]))
  }

  /** Reports what a person did. */
  async act(act: Act | undefined): Promise<void> {
    if (act?.request) await this.post(act.request)
  }

  /** Whether this many messages and changes of a channel wait, without the messages whose turn has begun. */
  async waiting({ name }: ChannelKind, count: number): Promise<boolean> {
    return (await this.#list('inbox', `channel=${name}&state=pending`)).length === count
  }

  /** Resolves once nothing of the channel waits or runs. Default: of all channels. */
  async idle(kind?: ChannelKind): Promise<void> {
    const isQuiet = kind ? () => this.#isQuiet(kind) : () => this.#isAllQuiet()
    let quiet = 0
    await this.until(async () => {
      quiet = (await isQuiet()) ? quiet + 1 : 0
      return quiet >= QUIET_POLLS
    })
  }

  /** The number of the message or change of a channel that arrived last. */
  async newest(kind: ChannelKind): Promise<number> {
    return (await this.#newestRow(kind))?.number ?? 0
  }

  /** Resolves once a message or change of the channel after this number has arrived and ended. */
  async handled(kind: ChannelKind, after: number): Promise<void> {
    await this.until(async () => {
      const row = await this.#newestRow(kind)
      return row !== undefined && row.number > after && row.state === 'done'
    })
  }

  async #newestRow({ name }: ChannelKind): Promise<InboxRow | undefined> {
    const [row] = await this.#list('inbox', `channel=${name}`)
    return row as InboxRow | undefined
  }

  async #isQuiet({ name }: ChannelKind): Promise<boolean> {
    const [inbox, outbox] = [`channel=${name}&state=pending,running`, `channel=${name}&state=queued,sending,failed`]
    return (await this.#list('inbox', inbox)).length + (await this.#list('outbox', outbox)).length === 0
  }

  async #isAllQuiet(): Promise<boolean> {
    const status = (await (await fetch(`${this.#daemon?.url}/api/status`)).json()) as Readonly<Record<string, number>>
    return LOADS.every((name) => status[name] === 0)
  }

  /** The newest rows of the inbox or the outbox. */
  async #list(box: 'inbox' | 'outbox', query: string): Promise<readonly object[]> {
    const answer = await fetch(`${this.#daemon?.url}/api/deliveries/${box}?${query}&limit=20`)
    const { messages, replies } = (await answer.json()) as Partial<Readonly<Record<'messages' | 'replies', readonly object[]>>>
    return messages ?? replies ?? []
  }

  async until(isSo: () => boolean | Promise<boolean>, what = String(isSo)): Promise<void> {
    const endMs = performance.now() + WAIT_MS_MAX
    while (!(await isSo())) {
      if (performance.now() > endMs) throw new Error(`The condition did not hold within ${WAIT_MS_MAX / 1000} s: ${what}`)
      await sleep(POLL_MS)
    }
  }
}

/** How many messages of the bot contain a text. */
export const countOf = ({ delivered }: ChannelKind, text: string): number => delivered().filter((said) => said.includes(text)).length
