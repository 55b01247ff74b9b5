/** One conversation over `/ws/chat`: what was said before, the answer as it arrives, and the tool calls in between. */
import { type Signal, signal } from '@preact/signals'
import { answered, api, type Got, get } from '../data/api.ts'
import type { components } from '../data/api-types.ts'
import { socketUrl } from '../data/base.ts'
import { onEvent } from '../data/live.ts'
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
const NAME_CHARS_MAX = 60
const WAIT_MS_MIN = 400
const WAIT_MS_MAX = 5000
const TOKEN_REVOKED = 4401

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
  #shownMax = PAGE
  #socket: WebSocket | undefined
  #waitMs = WAIT_MS_MIN
  #timer: number | undefined
  #isClosed = false
  #pending: Frame[] = []
  #isDrawing = false
  readonly #stopEvents: () => void

  constructor(id: string | undefined) {
    this.id = signal(id)
    this.#isNew = id === undefined
    this.#stopEvents = onEvent((event) => {
      const isEnd = event.type === 'turn_completed' || event.type === 'turn_failed'
      // A turn that another page or a channel asked for.
      if (isEnd && 'session_id' in event && isSession(event.session_id, this.id.value) && this.running.value === 0) void this.load()
    })
    if (id !== undefined) void this.load()
    this.#connect()
  }

  close(): void {
    this.#isClosed = true
    this.#stopEvents()
    window.clearTimeout(this.#timer)
    this.#socket?.close()
  }

  send(content: string): void {
    this.#add({ kind: 'person', text: content })
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
    this.#shownMax *= 2
    await this.load()
  }

  /** Loads what was said, unless an answer is arriving. */
  async load(): Promise<void> {
    const id = this.id.value
    if (id === undefined) return
    try {
      const { messages } = await get('/api/sessions/{id}/messages', {
        path: { id },
        query: { limit: String(Math.min(this.#shownMax + 1, 500)) },
      })
      if (this.running.value > 0 || this.#isClosed) return
      this.hasMore.value = messages.length > this.#shownMax
      this.entries.value = messages.slice(-this.#shownMax).flatMap(entriesOf)
      this.problem.value = undefined
    } catch (error) {
      // A session that does not exist yet has no messages.
      if (!(error instanceof Error && 'status' in error && error.status === 404)) this.problem.value = error
    }
  }

  #write(frame: ClientFrame): void {
    this.#socket?.send(JSON.stringify(frame))
  }

  #connect(): void {
    if (this.#isClosed) return
    const socket = new WebSocket(socketUrl('ws/chat', { session_id: this.id.value }), ['sluice.v1'])
    this.#socket = socket
    socket.onmessage = ({ data }) => this.#receive(JSON.parse(data as string) as Frame)
    socket.onclose = ({ code }) => {
      if (this.#isClosed) return
      if (code === TOKEN_REVOKED) return signedOut()
      this.state.value = 'broken'
      const lost = this.running.value - this.#unsent.length
      if (lost > 0) this.#add({ kind: 'problem', text: 'The connection broke while the answer arrived.' })
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
      this.#isDrawing = false
      const frames = this.#pending
      this.#pending = []
      for (const one of frames) this.#take(one)
    }
    if (document.visibilityState === 'visible') requestAnimationFrame(draw)
    else setTimeout(draw, 100)
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
        this.#end()
        return
      case 'error':
        this.#add({ kind: 'problem', text: frame.message })
        this.#end()
    }
  }

  /** The whole answer replaces what arrived in pieces since the last tool call. */
  #finish({ full_response, model, input_tokens, output_tokens, cost_usd }: Extract<Frame, { type: 'done' }>): void {
    const facts = [model, `${input_tokens + output_tokens} tokens`, ...(cost_usd > 0 ? [`$${cost_usd.toFixed(4)}`] : [])].join(' · ')
    const last = this.entries.value.at(-1)
    if (last?.kind === 'answer') this.entries.value = [...this.entries.value.slice(0, -1), { ...last, facts }]
    else if (full_response !== '') this.#add({ kind: 'answer', text: full_response, facts })
    if (this.#isNew) void this.#name()
    this.#end()
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

  #end(): void {
    this.running.value = Math.max(0, this.running.value - 1)
    this.#change((entry) =>
      entry.kind === 'question' && entry.question.answer === undefined
        ? { ...entry, question: { ...entry.question, answer: 'over' } }
        : entry,
    )
    void refresh('/api/sessions')
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
