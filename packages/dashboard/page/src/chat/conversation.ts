/** One conversation over `/ws/chat`: what was said before, the answer as it arrives, and the tool calls in between. */
import { type Signal, signal } from '@preact/signals'
import { ApiError, answered, api, type Got, get } from '../data/api.ts'
import type { components } from '../data/api-types.ts'
import { socketUrl } from '../data/base.ts'
import { type Gap, type LiveEvent, onEvent, onRenewal } from '../data/live.ts'
import { refresh } from '../data/queries.ts'
import { signedOut } from '../data/session.ts'

type Frame = components['schemas']['ChatFrame']
type ClientFrame = components['schemas']['ChatClientFrame']
type Stored = Got<'/api/sessions/{id}/messages'>['messages'][number]

export interface ToolCall {
  readonly id: string
  readonly name: string
  readonly input: unknown
  readonly output?: string
}

export interface Question {
  readonly requestId: string
  readonly tool: string
  readonly summary: string
  readonly expiresAtMs: number
  readonly answer?: 'approved' | 'rejected' | 'over'
}

export type Entry =
  | { readonly kind: 'person'; readonly text: string; readonly untrusted?: string }
  | { readonly kind: 'answer'; readonly text: string; readonly facts?: string }
  | { readonly kind: 'thinking'; readonly text: string }
  | { readonly kind: 'tool'; readonly call: ToolCall }
  | { readonly kind: 'question'; readonly question: Question }
  | { readonly kind: 'problem'; readonly text: string }
  | { readonly kind: 'aborted' }

export type State = 'connecting' | 'ready' | 'broken'

const PAGE = 60
/** One less than the gateway answers at once. */
const SHOWN_MAX = 499
/** A load that failed is tried again after this time. */
const LOAD_AGAIN_MS = 2000
/** Frames are drawn at the latest after this time: a browser draws no pictures of a page that is hidden. */
const DRAW_MS_MAX = 100
/** The ids of the last turns of this page, whose ends it knows from its own connection. */
const OWN_TURNS_MAX = 50
/** The last entries of failed turns, which stay below the stored messages although no store has them. */
const UNSAVED_MAX = 200
const NAME_CHARS_MAX = 60
const WAIT_MS_MIN = 400
const WAIT_MS_MAX = 5000
const TOKEN_REVOKED = 4401

/** Browsers have `randomUUID` only for pages over HTTPS. */
const randomName = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')

export class Conversation {
  readonly id: Signal<string | undefined>
  readonly state = signal<State>('connecting')
  readonly entries = signal<readonly Entry[]>([])
  /** The number of sent messages whose turn has not ended. */
  readonly running = signal(0)
  /** Whether there are earlier messages than those that are shown. */
  readonly hasMore = signal(false)
  readonly problem = signal<unknown>(undefined)
  /** Messages that wait for the connection. */
  #unsent: string[] = []
  #isNew: boolean
  /** The name of the session. The page gives a new one its name, so that its turns go on while no page is connected to it. */
  readonly #session: string
  #shownMax = PAGE
  #socket: WebSocket | undefined
  #waitMs = WAIT_MS_MIN
  #timer: number | undefined
  #isClosed = false
  #pending: Frame[] = []
  #isDrawing = false
  /** Entries of messages whose turn has not ended, in the order of their turns. */
  #asked: Entry[] = []
  /** Entries that no store has: those of turns that failed. */
  #unsaved: Entry[] = []
  /** Those of them whose end is not known, because the connection broke: the store may have them after all. */
  readonly #lost = new WeakSet<Entry>()
  readonly #ownTurns = new Set<string>()
  /** Ended turns that are not shown: those of other pages and channels, and the one whose last frame is still on its way. */
  readonly #notShown = new Set<string>()
  #isStale = false
  #loading: Promise<void> | undefined
  #loadTimer: number | undefined
  readonly #stops: readonly (() => void)[]

  constructor(id: string | undefined) {
    this.id = signal(id)
    this.#session = id ?? randomName()
    this.#isNew = id === undefined
    this.#stops = [onEvent((event) => this.#hear(event)), onRenewal(() => void this.load())]
    if (id !== undefined) void this.load()
    this.#connect()
  }

  close(): void {
    this.#isClosed = true
    for (const stop of this.#stops) stop()
    window.clearTimeout(this.#timer)
    window.clearTimeout(this.#loadTimer)
    this.#socket?.close()
  }

  send(content: string): void {
    const entry = { kind: 'person', text: content } as const
    this.#asked.push(entry)
    this.#add(entry)
    this.running.value += 1
    if (this.state.value === 'ready') this.#write({ type: 'message', content })
    else this.#unsent.push(content)
  }

  abort(): void {
    this.#write({ type: 'abort' })
  }

  answer(requestId: string, approved: boolean): void {
    this.#write({ type: 'approval_response', request_id: requestId, decision: approved ? 'approve' : 'deny' })
    this.#settle(requestId, approved ? 'approved' : 'rejected')
  }

  /** Shows earlier messages too. */
  async more(): Promise<void> {
    this.#shownMax = Math.min(this.#shownMax * 2, SHOWN_MAX)
    await this.load()
  }

  /** Loads what was said; while an answer arrives, once it has ended. What is asked for during a load is loaded after it. */
  load(): Promise<void> {
    this.#isStale = true
    this.#loading ??= this.#loadAll().finally(() => {
      this.#loading = undefined
    })
    return this.#loading
  }

  async #loadAll(): Promise<void> {
    window.clearTimeout(this.#loadTimer)
    while (this.#isStale && this.running.value === 0 && !this.#isClosed) {
      const id = this.id.value
      if (id === undefined) return
      this.#isStale = false
      const limit = String(this.#shownMax + 1)
      try {
        const { messages } = await get('/api/sessions/{id}/messages', { path: { id }, query: { limit } })
        if (this.running.value > 0) this.#isStale = true
        else if (!this.#isClosed && !this.#isStale) this.#show(messages)
      } catch (error) {
        // A session that does not exist yet has no messages.
        if (error instanceof ApiError && error.status === 404) continue
        this.problem.value = error
        this.#isStale = true
        this.#loadTimer = window.setTimeout(() => void this.load(), LOAD_AGAIN_MS)
        return
      }
    }
  }

  #show(messages: readonly Stored[]): void {
    const stored = messages.slice(-this.#shownMax).flatMap(entriesOf)
    this.hasMore.value = messages.length > this.#shownMax && this.#shownMax < SHOWN_MAX
    const asked = new Set(stored.slice(-PAGE).flatMap((entry) => (entry.kind === 'person' ? [entry.text] : [])))
    this.#unsaved = this.#unsaved.filter((entry) => !(this.#lost.has(entry) && entry.kind === 'person' && asked.has(entry.text)))
    this.entries.value = [...stored, ...this.#unsaved]
    this.problem.value = undefined
  }

  /** Notices the turns that another page or a channel asked for. */
  #hear(event: LiveEvent | Gap): void {
    if (event.type !== 'turn_completed' && event.type !== 'turn_failed') return
    const { session_id: session, turn_id: turn } = event as LiveEvent & { readonly turn_id: string }
    if (!isSession(session, this.id.value) || this.#ownTurns.has(turn)) return
    this.#notShown.add(turn)
    this.#catchUp()
  }

  /** Loads what other pages asked, once no answer of this page arrives any more. */
  #catchUp(): void {
    if (this.running.value > 0 || (this.#notShown.size === 0 && !this.#isStale)) return
    this.#notShown.clear()
    void this.load()
  }

  #write(frame: ClientFrame): void {
    this.#socket?.send(JSON.stringify(frame))
  }

  #connect(): void {
    if (this.#isClosed) return
    const socket = new WebSocket(socketUrl('ws/chat', { session_id: this.#session }), ['sluice.v1'])
    this.#socket = socket
    socket.onmessage = ({ data }) => this.#receive(JSON.parse(data as string) as Frame)
    socket.onclose = ({ code }) => {
      if (this.#isClosed) return
      if (code === TOKEN_REVOKED) return signedOut()
      this.state.value = 'broken'
      const lost = this.#asked.length - this.#unsent.length
      if (lost > 0) this.#add({ kind: 'problem', text: 'The connection broke. The answer goes on, and is shown here once it is complete.' })
      // The turns of a connection that broke go on, and their answers are loaded once they are stored.
      this.#closeQuestions()
      for (const entry of this.#asked.slice(0, lost)) {
        this.#fail(entry)
        this.#lost.add(entry)
      }
      this.running.value = this.#unsent.length
      this.#timer = window.setTimeout(() => this.#connect(), this.#waitMs)
      this.#waitMs = Math.min(this.#waitMs * 2, WAIT_MS_MAX)
    }
  }

  /** Frames that arrive within one frame of the screen are shown together. */
  #receive(frame: Frame): void {
    this.#pending.push(frame)
    if (this.#isDrawing) return
    this.#isDrawing = true
    const draw = () => {
      cancelAnimationFrame(picture)
      window.clearTimeout(timer)
      this.#isDrawing = false
      const frames = this.#pending
      this.#pending = []
      for (const one of frames) this.#take(one)
    }
    const picture = requestAnimationFrame(draw)
    const timer = window.setTimeout(draw, DRAW_MS_MAX)
  }

  #take(frame: Frame): void {
    switch (frame.type) {
      case 'session_start': {
        const isAgain = this.state.value === 'broken'
        this.#waitMs = WAIT_MS_MIN
        this.id.value = frame.session_id
        this.state.value = 'ready'
        if (isAgain) void this.load()
        for (const content of this.#unsent.splice(0)) this.#write({ type: 'message', content })
        return
      }
      case 'chunk':
        this.#append('answer', frame.content)
        return
      case 'thinking':
        this.#append('thinking', frame.content)
        return
      case 'tool_call':
        this.#add({ kind: 'tool', call: { id: frame.id, name: frame.name, input: frame.args } })
        return
      case 'tool_result':
        this.#change((entry) =>
          entry.kind === 'tool' && entry.call.id === frame.id && entry.call.output === undefined
            ? { ...entry, call: { ...entry.call, output: frame.output } }
            : entry,
        )
        return
      case 'approval_request':
        this.#add({
          kind: 'question',
          question: {
            requestId: frame.request_id,
            tool: frame.tool,
            summary: frame.arguments_summary,
            expiresAtMs: Date.now() + frame.timeout_secs * 1000,
          },
        })
        return
      case 'done':
        this.#finish(frame)
        return
      case 'aborted':
        this.#add({ kind: 'aborted' })
        this.#end(this.#asked[0], frame.turn_id)
        return
      case 'error':
        this.#add({ kind: 'problem', text: frame.message })
        // A refused answer to a question ends no turn, and a full queue refuses the newest message.
        if (frame.code !== 'INVALID_APPROVAL_RESPONSE')
          this.#end(frame.code === 'SESSION_QUEUE_FULL' ? this.#asked.at(-1) : this.#asked[0], null)
    }
  }

  /** The whole answer replaces what arrived in pieces since the last tool call. */
  #finish({ full_response, turn_id, model, input_tokens, output_tokens, cost_usd }: Extract<Frame, { type: 'done' }>): void {
    const facts = [model, `${input_tokens + output_tokens} tokens`, ...(cost_usd > 0 ? [`$${cost_usd.toFixed(4)}`] : [])].join(' · ')
    const last = this.entries.value.at(-1)
    if (last?.kind === 'answer') this.entries.value = [...this.entries.value.slice(0, -1), { ...last, facts }]
    else if (full_response !== '') this.#add({ kind: 'answer', text: full_response, facts })
    if (this.#isNew) void this.#name()
    this.#asked.shift()
    this.#unsaved = []
    this.#settleTurn(turn_id)
  }

  /** Gives a new conversation the beginning of its first message as its name. */
  async #name(): Promise<void> {
    this.#isNew = false
    const id = this.id.value
    const [first] = this.entries.value
    if (id === undefined || first?.kind !== 'person') return
    const name = Array.from(first.text.replace(/[\s\p{C}]+/gu, ' ').trim())
      .slice(0, NAME_CHARS_MAX)
      .join('')
    if (name !== '') await answered(api.PUT('/api/sessions/{id}', { params: { path: { id } }, body: { name } })).catch(() => undefined)
    await refresh('/api/sessions')
  }

  /** A turn has ended without an answer. `asked` is its message. */
  #end(asked: Entry | undefined, turn: string | null): void {
    this.#closeQuestions()
    this.#fail(asked)
    this.#settleTurn(turn)
  }

  /** Keeps what is shown of a turn that no store has. */
  #fail(asked: Entry | undefined): void {
    this.#asked = this.#asked.filter((entry) => entry !== asked)
    const all = this.entries.value
    const from = asked ? all.indexOf(asked) : all.length - 1
    const shown = all.slice(Math.max(from, 0)).filter((entry) => !this.#asked.includes(entry) && !this.#unsaved.includes(entry))
    this.#unsaved = [...this.#unsaved, ...shown].slice(-UNSAVED_MAX)
  }

  #settleTurn(turn: string | null): void {
    this.running.value = Math.max(0, this.running.value - 1)
    this.#closeQuestions()
    if (turn !== null) {
      this.#ownTurns.add(turn)
      this.#notShown.delete(turn)
      const [oldest] = this.#ownTurns
      if (this.#ownTurns.size > OWN_TURNS_MAX && oldest !== undefined) this.#ownTurns.delete(oldest)
    }
    this.#catchUp()
    void refresh('/api/sessions')
  }

  #closeQuestions(): void {
    this.#change((entry) =>
      entry.kind === 'question' && entry.question.answer === undefined
        ? { ...entry, question: { ...entry.question, answer: 'over' } }
        : entry,
    )
  }

  #settle(requestId: string, answer: 'approved' | 'rejected'): void {
    this.#change((entry) =>
      entry.kind === 'question' && entry.question.requestId === requestId ? { ...entry, question: { ...entry.question, answer } } : entry,
    )
  }

  #add(entry: Entry): void {
    this.entries.value = [...this.entries.value, entry]
  }

  #append(kind: 'answer' | 'thinking', text: string): void {
    const last = this.entries.value.at(-1)
    if (last?.kind === kind && !('facts' in last))
      this.entries.value = [...this.entries.value.slice(0, -1), { kind, text: last.text + text }]
    else this.#add({ kind, text })
  }

  #change(change: (entry: Entry) => Entry): void {
    this.entries.value = this.entries.value.map(change)
  }
}

/** Events name the session of a client as `<device>/<session>`. */
const isSession = (named: unknown, id: string | undefined): boolean =>
  id !== undefined && (named === id || String(named).endsWith(`/${id}`))

/** Returns the entries of a stored message. */
function entriesOf({ role, content, untrusted, tool_calls = [], tool_results = [] }: Stored): Entry[] {
  const text = content === '' ? [] : [content]
  if (role === 'assistant')
    return [
      ...text.map((one) => ({ kind: 'answer', text: one, facts: '' }) as const),
      ...tool_calls.map(({ id, name, input }) => ({ kind: 'tool', call: { id, name, input } }) as const),
    ]
  if (tool_results.length > 0)
    return tool_results.map(({ id, name, output }) => ({
      kind: 'tool',
      call: { id, name, input: undefined, output: typeof output === 'string' ? output : JSON.stringify(output, null, 2) },
    }))
  return text.map((one) => ({ kind: 'person', text: one, ...(untrusted !== undefined && { untrusted }) }))
}
