/**
 * One conversation: its earlier messages, and the messages on their way with their answers as they arrive. The gateway stores each message
 * before it confirms it, and the browser keeps it until its turn has ended, so leaving the page or losing the network changes nothing.
 */
import { type Signal, signal } from '@preact/signals'
import { ApiError, answered, api, type Got, gatewayMs, get } from '../data/api.ts'
import type { components } from '../data/api-types.ts'
import { linesOf } from '../data/json-lines.ts'
import { type Gap, type LiveEvent, onEvent, onRenewal } from '../data/live.ts'
import { refresh } from '../data/queries.ts'
import { keepSent, type Sent, sentOf } from './outgoing.ts'

type Frame = components['schemas']['ChatFrame']
type Stored = Got<'/api/sessions/{id}/messages'>['messages'][number]

export interface ToolCall {
  readonly id: string
  readonly name: string
  readonly input: unknown
  readonly output?: string
}

/** What an answer took. */
export interface Facts {
  readonly at?: string | undefined
  readonly turn?: string | undefined
  readonly model?: string | null
  readonly tokens?: number
  readonly costUsd?: number
}

export type Entry =
  | { readonly kind: 'person'; readonly text: string; readonly untrusted?: string; readonly at?: string }
  | { readonly kind: 'answer'; readonly text: string; readonly facts?: Facts }
  | { readonly kind: 'thinking'; readonly text: string }
  | { readonly kind: 'tool'; readonly call: ToolCall }
  /** Parts of the answer that the gateway no longer keeps; the whole answer comes at its end. */
  | { readonly kind: 'gap' }
  /** The message with this id has no answer, for this reason. It has a turn, or perhaps none. */
  | { readonly kind: 'problem'; readonly text: string; readonly message: string; readonly hasTurn: boolean }

const PAGE = 60
/** One less than the gateway answers at once. */
const SHOWN_MAX = 499
/** A load that failed is tried again after this time. */
const LOAD_AGAIN_MS = 2000
/** Frames are drawn at the latest after this time: a browser draws no pictures of a page that is hidden. */
const DRAW_MS_MAX = 100
/** A message of an earlier visit is shown after this time, unless its turn has ended by then and its answer is stored. */
const SHOW_KEPT_MS = 400
const NAME_CHARS_MAX = 60
const TURNS_MAX = '100'
const WAIT_MS_MIN = 400
const WAIT_MS_MAX = 5000
/**
 * The gateway knows the key of a message at least this long, unless its turn has failed. Later only a person sends the message again: the
 * gateway would run it a second time.
 */
const SENT_AGAIN_MS_MAX = 240_000
const PERHAPS_SENT = 'Perhaps sent: the gateway has not confirmed this message, and lists no turn of it.'
const STOPPED = 'Stopped. Perhaps it was sent: the gateway has not confirmed it.'
/** The gateway, or a proxy before it, cannot be reached now. */
const PASSING = [0, 409, 502, 503, 504]
/** The gateway may have taken the message all the same. */
const UNCERTAIN = [0, 409]

/** Browsers have `randomUUID` only for pages over HTTPS. */
const randomName = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')

const isPassing = (error: unknown): boolean => error instanceof ApiError && PASSING.includes(error.status)

/** A message on its way, and what has arrived of its answer. */
class Outgoing {
  sent: Sent
  parts: Entry[] = []
  /** Whether its turn has ended with an answer, which the store has. */
  isDone = false
  /** A message of an earlier visit is shown once it is certain that the store does not have it. */
  isShown: boolean
  /** Whether a person has stopped it while it was being posted. */
  isStopped = false
  /** Whether the gateway may have the message without having confirmed it. */
  isUncertain = false
  /** Whether another page, or a caller of the API, has sent it. */
  readonly isForeign: boolean

  constructor(sent: Sent, { isShown, isForeign = false }: { readonly isShown: boolean; readonly isForeign?: boolean }) {
    this.sent = sent
    this.isShown = isShown
    this.isForeign = isForeign
  }

  get isOpen(): boolean {
    return !this.isDone && this.sent.failure === undefined
  }

  get entries(): readonly Entry[] {
    const { id, content, atMs, turn, failure } = this.sent
    return [
      { kind: 'person', text: content, at: new Date(atMs).toISOString() },
      ...this.parts,
      ...(failure === undefined ? [] : [{ kind: 'problem' as const, text: failure, message: id, hasTurn: turn !== undefined }]),
    ]
  }
}

export class Conversation {
  readonly id: Signal<string | undefined>
  readonly entries = signal<readonly Entry[]>([])
  /** The turns of sent messages that have not ended. */
  readonly turns = signal<readonly string[]>([])
  /** The number of sent messages whose turn has not ended. */
  readonly running = signal(0)
  /** Whether a message waits because the gateway cannot be reached. */
  readonly isWaiting = signal(false)
  /** Whether the conversation has earlier messages than the shown ones. */
  readonly hasMore = signal(false)
  readonly problem = signal<unknown>(undefined)
  /** The name of the session. The page gives a new one its name. */
  readonly session: string
  /** The place, found by a search, up to which the conversation is shown to be read. Nothing is sent or followed meanwhile. */
  readonly upTo: string | undefined
  #stored: readonly StoredEntry[] = []
  #messages: Outgoing[] = []
  /** The turns of messages that this page has posted. */
  readonly #taken = new Set<string>()
  /** The turns whose messages are in `#stored`. */
  #storedTurns: ReadonlySet<string> = new Set()
  /** The ids of the messages that this page keeps in the browser. The messages of other pages stay there. */
  readonly #own = new Set<string>()
  #shownMax = PAGE
  #isPosting = false
  #isStale = false
  #loading: Promise<void> | undefined
  #loadTimer: number | undefined
  #drawTimer: number | undefined
  readonly #closed = new AbortController()
  readonly #stops: readonly (() => void)[]

  constructor(id: string | undefined, upTo?: string) {
    this.id = signal(id)
    this.session = id ?? randomName()
    this.upTo = upTo
    if (upTo !== undefined) {
      this.#stops = []
      void this.load()
      return
    }
    for (const sent of id === undefined ? [] : sentOf(id)) {
      const message = new Outgoing(sent, { isShown: sent.turn === undefined || sent.failure !== undefined })
      message.isUncertain = message.isOpen && sent.turn === undefined
      this.#add(message)
    }
    this.#stops = [onEvent((event) => this.#hear(event)), onRenewal(() => void this.load())]
    this.#changed()
    if (id !== undefined) void this.load()
    for (const message of this.#messages)
      if (message.isOpen && message.sent.turn !== undefined) void this.#follow(message, message.sent.turn)
    void this.#post()
  }

  close(): void {
    this.#closed.abort()
    for (const stop of this.#stops) stop()
    window.clearTimeout(this.#loadTimer)
    window.clearTimeout(this.#drawTimer)
  }

  send(content: string): void {
    this.id.value ??= this.session
    this.#add(new Outgoing({ id: randomName(), content, atMs: Date.now() }, { isShown: true }))
    this.#changed()
    void this.#post()
  }

  #add(message: Outgoing): void {
    this.#messages.push(message)
    if (!message.isForeign) this.#own.add(message.sent.id)
  }

  /** Sends a message without an answer again. */
  retry(id: string): void {
    const message = this.#messages.find(({ sent }) => sent.id === id)
    this.discard(id)
    if (message) this.send(message.sent.content)
  }

  discard(id: string): void {
    this.#messages = this.#messages.filter(({ sent }) => sent.id !== id)
    this.#changed()
  }

  /** Stops the oldest turn that has not ended. */
  abort(): void {
    const message = this.#messages.find(({ isOpen }) => isOpen)
    if (!message) return
    const { turn, postedAtMs } = message.sent
    if (turn === undefined) {
      message.isStopped = postedAtMs !== undefined
      this.#fail(message, message.isStopped ? STOPPED : 'Not sent.')
    } else abortTurn(turn)
  }

  /** Shows earlier messages too. */
  async more(): Promise<void> {
    this.#shownMax = Math.min(this.#shownMax * 2, SHOWN_MAX)
    await this.load()
  }

  /** Loads the stored messages. A call during a load starts another one after it. While a message is unconfirmed, the load waits for the answer to it. */
  load(): Promise<void> {
    this.#isStale = true
    this.#loading ??= this.#loadAll().finally(() => {
      this.#loading = undefined
    })
    return this.#loading
  }

  get #isClosed(): boolean {
    return this.#closed.signal.aborted
  }

  async #loadAll(): Promise<void> {
    window.clearTimeout(this.#loadTimer)
    while (this.#isStale && !this.#isClosed) {
      if (this.#messages.some(({ isOpen, isUncertain }) => isOpen && isUncertain)) return
      const id = this.id.value
      if (id === undefined) return
      this.#isStale = false
      const done = this.#messages.filter(({ isDone }) => isDone)
      try {
        const query = { limit: String(this.#shownMax + 1), ...(this.upTo !== undefined && { up_to: this.upTo }) }
        const [stored, listed] = await Promise.all([
          get('/api/sessions/{id}/messages', { path: { id }, query }),
          get('/api/turns', { query: { session: id, limit: TURNS_MAX } }),
        ])
        if (this.#isClosed) return
        this.#show(stored.messages, new Map(listed.turns.map((turn) => [turn.ended_at, turn])))
        if (this.upTo !== undefined) return this.#showEntries()
        this.#messages = this.#messages.filter((message) => !done.includes(message))
        const [first] = done
        const asked = this.#stored.filter(({ entry }) => entry.kind === 'person')
        if (first && asked.length === 1 && !this.hasMore.value) await this.#name(first.sent.content)
        if (first) void refresh('/api/sessions')
        for (const { turn_id } of listed.running) void this.#join(turn_id)
      } catch (error) {
        // A session that does not exist yet has no messages.
        if (!(error instanceof ApiError && error.status === 404)) {
          this.problem.value = error
          this.#isStale = true
          this.#loadTimer = window.setTimeout(() => void this.load(), LOAD_AGAIN_MS)
          return
        }
        for (const { turn_id } of await get('/api/turns', { query: { session: id, limit: '1' } }).then(
          ({ running }) => running,
          () => [],
        ))
          void this.#join(turn_id)
      }
      this.#changed()
    }
  }

  #show(messages: readonly Stored[], turns: EndedTurns): void {
    this.hasMore.value = messages.length > this.#shownMax && this.#shownMax < SHOWN_MAX
    this.#storedTurns = new Set(messages.flatMap(({ at }) => turns.get(at)?.turn_id ?? []))
    this.#stored = storedEntries(messages.slice(-this.#shownMax), turns)
    this.problem.value = undefined
  }

  /** Follows a turn of this conversation that another page, or an earlier visit, has begun. */
  async #join(turn: string): Promise<void> {
    if (this.#messages.some(({ sent }) => sent.turn === turn)) return
    const { input, created_at } = await get('/api/turns/{id}', { path: { id: turn } }).catch(() => ({ input: null, created_at: '' }))
    if (input === null || this.#isClosed || this.#messages.some(({ sent }) => sent.turn === turn)) return
    const sent = { id: turn, content: input, atMs: Date.parse(created_at), turn }
    const message = new Outgoing(sent, { isShown: true, isForeign: true })
    this.#add(message)
    this.#changed()
    void this.#follow(message, turn)
  }

  /** Notices the turns that another page or a channel asked for. */
  #hear(event: LiveEvent | Gap): void {
    if (event.type !== 'turn_started' && event.type !== 'turn_completed' && event.type !== 'turn_failed') return
    const { session_id: session, turn_id: turn } = event as LiveEvent & { readonly turn_id: string }
    if (!isSession(session, this.id.value) || this.#messages.some(({ sent }) => sent.turn === turn)) return
    void this.load()
  }

  /** Posts the messages in their order, each until the gateway has taken or refused it. */
  async #post(): Promise<void> {
    if (this.#isPosting) return
    this.#isPosting = true
    let waitMs = WAIT_MS_MIN
    for (;;) {
      const message = this.#messages.find(({ isOpen, isStopped, sent }) => (isOpen || isStopped) && sent.turn === undefined)
      if (!message || this.#isClosed) break
      message.isUncertain = true
      try {
        const turn = await this.#turnOf(message)
        if (turn === undefined && this.#isClosed) break
        if (turn !== undefined) message.isUncertain = false
        this.isWaiting.value = false
        waitMs = WAIT_MS_MIN
        if (turn !== undefined) this.#begin(message, turn)
        else if (message.isOpen) this.#fail(message, PERHAPS_SENT)
        else message.isStopped = false
      } catch (error) {
        if (!(error instanceof ApiError && UNCERTAIN.includes(error.status))) for (const one of this.#messages) one.isUncertain = false
        if (isPassing(error)) {
          this.isWaiting.value = true
          await pause(waitMs, this.#closed.signal)
          waitMs = Math.min(waitMs * 2, WAIT_MS_MAX)
        } else {
          message.isStopped = false
          this.#fail(message, error instanceof Error ? error.message : String(error))
        }
      }
      if (this.#isStale) void this.load()
    }
    this.#isPosting = false
  }

  /**
   * Resolves to the turn of a message. It is posted, unless the gateway has it from an earlier attempt. Resolves to undefined for a message that
   * was posted, has no turn, and must not be posted again.
   */
  async #turnOf(message: Outgoing): Promise<string | undefined> {
    const { id, content, postedAtMs } = message.sent
    if (postedAtMs === undefined) {
      message.sent = { ...message.sent, postedAtMs: gatewayMs() }
      this.#changed()
    } else {
      const known = await this.#knownTurn(content, postedAtMs)
      if (known !== undefined || message.isStopped || this.#isClosed || gatewayMs() - postedAtMs > SENT_AGAIN_MS_MAX) return known
    }
    const { turn_id } = await answered<{ readonly turn_id: string }>(
      api.POST('/api/turns', {
        headers: { Prefer: 'respond-async', 'X-Idempotency-Key': id },
        body: { message: content, session_id: this.session, ask: true },
      }) as never,
    )
    return turn_id
  }

  /** Looks for the turn of a message whose confirmation got lost: the first one with its text since it was posted. */
  async #knownTurn(content: string, postedAtMs: number): Promise<string | undefined> {
    const since = new Date(postedAtMs).toISOString()
    const { running, turns } = await get('/api/turns', { query: { session: this.session, since, limit: TURNS_MAX } })
    const begun = [...running, ...turns].filter(({ turn_id, created_at }) => created_at >= since && !this.#taken.has(turn_id))
    for (const { turn_id } of begun.toSorted((a, b) => (a.created_at < b.created_at ? -1 : 1))) {
      const { input } = await get('/api/turns/{id}', { path: { id: turn_id } })
      if (input === content.trim()) return turn_id
    }
    return undefined
  }

  /** Follows the turn of a message, and ends it if a person has stopped or discarded the message meanwhile. */
  #begin(message: Outgoing, turn: string): void {
    this.#taken.add(turn)
    const isKept = this.#messages.includes(message)
    const { failure: _, ...sent } = message.sent
    message.sent = { ...sent, turn }
    if (message.isStopped || !isKept) abortTurn(turn)
    message.isStopped = false
    this.#messages = this.#messages.filter((one) => one === message || one.sent.id !== turn)
    this.#changed()
    if (isKept) void this.#follow(message, turn)
  }

  /** Takes the frames of a turn until it has ended. */
  async #follow(message: Outgoing, turn: string): Promise<void> {
    const shows = window.setTimeout(() => {
      message.isShown = true
      this.#changed()
    }, SHOW_KEPT_MS)
    for (let waitMs = WAIT_MS_MIN; message.isOpen && !this.#isClosed; waitMs = Math.min(waitMs * 2, WAIT_MS_MAX)) {
      try {
        const { response } = await api.GET('/api/turns/{id}/stream', {
          params: { path: { id: turn } },
          parseAs: 'stream',
          signal: this.#closed.signal,
        })
        // The turn was erased, with its conversation.
        if (response.status === 404) return this.discard(message.sent.id)
        if (response.ok && response.body) {
          message.parts = []
          for await (const frame of linesOf<Frame>(response.body)) this.#take(message, frame)
        }
      } catch {}
      if (message.isOpen) await pause(waitMs, this.#closed.signal)
    }
    window.clearTimeout(shows)
    if (!message.isDone || this.#isClosed) return
    await this.load()
  }

  #take(message: Outgoing, frame: Frame): void {
    const { parts } = message
    switch (frame.type) {
      case 'chunk':
        append(parts, 'answer', frame.content)
        break
      case 'thinking':
        append(parts, 'thinking', frame.content)
        break
      case 'gap':
        parts.push({ kind: 'gap' })
        break
      case 'tool_call':
        parts.push({ kind: 'tool', call: { id: frame.id, name: frame.name, input: frame.args } })
        break
      case 'tool_result': {
        const at = parts.findIndex((part) => part.kind === 'tool' && part.call.id === frame.id && part.call.output === undefined)
        const part = parts[at]
        if (part?.kind === 'tool') parts[at] = { ...part, call: { ...part.call, output: frame.output } }
        break
      }
      case 'done':
        this.#finish(message, frame)
        break
      case 'aborted':
        this.#fail(message, 'Aborted.')
        break
      case 'error':
        this.#fail(message, frame.message)
    }
    this.#draw()
  }

  /** The whole answer replaces what arrived in pieces since the last tool call. */
  #finish(
    message: Outgoing,
    { full_response: text, turn_id: turn, model, input_tokens, output_tokens, cost_usd }: Extract<Frame, { type: 'done' }>,
  ) {
    const { parts } = message
    const last = parts.at(-1)
    if (last?.kind === 'answer') parts.pop()
    const facts = { at: new Date().toISOString(), turn, model, tokens: input_tokens + output_tokens, costUsd: cost_usd }
    if (text !== '') parts.push({ kind: 'answer', text, facts })
    message.isDone = true
    this.#changed()
  }

  #fail(message: Outgoing, failure: string): void {
    message.sent = { ...message.sent, failure }
    message.isShown = true
    this.#changed()
  }

  /** Gives a new conversation the beginning of its first message as its name. */
  async #name(text: string): Promise<void> {
    const name = Array.from(text.replace(/[\s\p{C}]+/gu, ' ').trim())
      .slice(0, NAME_CHARS_MAX)
      .join('')
    const params = { path: { id: this.session } }
    if (name !== '') await answered(api.PUT('/api/sessions/{id}', { params, body: { name } })).catch(() => undefined)
  }

  /** Frames that arrive within one frame of the screen are shown together. */
  #draw(): void {
    if (this.#drawTimer !== undefined) return
    const draw = () => {
      cancelAnimationFrame(picture)
      window.clearTimeout(this.#drawTimer)
      this.#drawTimer = undefined
      this.#showEntries()
    }
    const picture = requestAnimationFrame(draw)
    this.#drawTimer = window.setTimeout(draw, DRAW_MS_MAX)
  }

  /** Keeps the messages on their way, and shows the conversation with them. */
  #changed(): void {
    const open = this.#messages.filter(({ isOpen }) => isOpen)
    this.running.value = open.length
    this.turns.value = open.flatMap(({ sent }) => sent.turn ?? [])
    if (this.id.value !== undefined)
      keepSent(
        this.session,
        this.#own,
        this.#messages.filter(({ isDone, isForeign }) => !isDone && !isForeign).map(({ sent }) => sent),
      )
    this.#showEntries()
  }

  /** A message without an answer stays where it was sent; those on their way are last. */
  #showEntries(): void {
    const shown = this.#messages.filter(
      ({ isShown, isDone, sent: { turn } }) => (isShown || isDone) && (turn === undefined || !this.#storedTurns.has(turn)),
    )
    const failed = shown.filter(({ sent }) => sent.failure !== undefined)
    const stored = this.#stored.flatMap(({ atMs, entry }, at) => {
      const earlier = failed.filter(({ sent }) => sent.atMs < atMs && sent.atMs >= (this.#stored[at - 1]?.atMs ?? 0))
      return [...earlier.flatMap(({ entries }) => entries), entry]
    })
    const lastMs = this.#stored.at(-1)?.atMs ?? 0
    const last = shown.filter(({ sent }) => sent.failure === undefined || sent.atMs >= lastMs || this.#stored.length === 0)
    this.entries.value = [...stored, ...last.flatMap(({ entries }) => entries)]
  }
}

/** Waits, at most until the signal ends the wait or the browser is connected again. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      window.clearTimeout(timer)
      window.removeEventListener('online', end)
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = window.setTimeout(end, ms)
    window.addEventListener('online', end)
    signal.addEventListener('abort', end)
  })
}

const abortTurn = (id: string): void =>
  void answered(api.POST('/api/turns/{id}/abort', { params: { path: { id } } })).catch(() => undefined)

function append(parts: Entry[], kind: 'answer' | 'thinking', text: string): void {
  const last = parts.at(-1)
  if (last?.kind === kind) parts[parts.length - 1] = { kind, text: last.text + text }
  else parts.push({ kind, text })
}

/** Events name the session of a client as `<device>/<session>`. */
const isSession = (named: unknown, id: string | undefined): boolean =>
  id !== undefined && (named === id || String(named).endsWith(`/${id}`))

interface StoredEntry {
  readonly atMs: number
  readonly entry: Entry
}

/** The turns by the times of their ends, which are the times of their answers. */
type EndedTurns = ReadonlyMap<string, Got<'/api/turns'>['turns'][number]>

function storedEntries(messages: readonly Stored[], turns: EndedTurns): readonly StoredEntry[] {
  const entries = messages.flatMap((message) => {
    const turn = turns.get(message.at)
    const facts = {
      at: message.at,
      ...(turn && { turn: turn.turn_id, model: turn.model, tokens: turn.input_tokens + turn.output_tokens, costUsd: turn.cost_usd }),
    }
    return entriesOf(message, facts).map((entry) => ({ atMs: Date.parse(message.at), entry }))
  })
  return withResults(entries)
}

/** Puts the results of tools into their calls, as an answer that arrives has them. A result whose call is not shown stays as it is. */
function withResults(stored: readonly StoredEntry[]): readonly StoredEntry[] {
  const joined: StoredEntry[] = []
  for (const one of stored) {
    const { entry } = one
    const { id, output } = entry.kind === 'tool' ? entry.call : {}
    const at = joined.findLastIndex(
      ({ entry: before }) => before.kind === 'tool' && before.call.id === id && before.call.output === undefined,
    )
    const asked = joined[at]
    if (output === undefined || asked?.entry.kind !== 'tool') joined.push(one)
    else joined[at] = { ...asked, entry: { kind: 'tool', call: { ...asked.entry.call, output } } }
  }
  return joined
}

/** Returns the entries of a stored message. */
function entriesOf({ role, content, untrusted, tool_calls = [], tool_results = [], at }: Stored, facts: Facts): Entry[] {
  const text = content === '' ? [] : [content]
  if (role === 'assistant')
    return [
      ...text.map((one) => ({ kind: 'answer', text: one, facts: tool_calls.length > 0 ? {} : facts }) as const),
      ...tool_calls.map(({ id, name, input }) => ({ kind: 'tool', call: { id, name, input } }) as const),
    ]
  if (tool_results.length > 0)
    return tool_results.map(({ id, name, output }) => ({
      kind: 'tool',
      call: { id, name, input: undefined, output: typeof output === 'string' ? output : JSON.stringify(output, null, 2) },
    }))
  return text.map((one) => ({ kind: 'person', text: one, at, ...(untrusted !== undefined && { untrusted }) }))
}
