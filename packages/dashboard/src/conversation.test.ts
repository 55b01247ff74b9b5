/** The chat of the page posts each message once, whatever becomes of the answers of the gateway. */
import { afterEach, expect, test, vi } from 'vitest'

/** The parts of the page's `Conversation` that a person uses. The page has types of its own, for browsers. */
interface Conversation {
  readonly entries: {
    readonly value: readonly { readonly kind: string; readonly text?: string; readonly hasTurn?: boolean; readonly message?: string }[]
  }
  send(content: string): void
  retry(id: string): void
  discard(id: string): void
  abort(): void
  close(): void
}

interface Call {
  readonly method: string
  readonly path: string
  readonly key: string | null
}

type Answer = Response | Promise<Response>

const GATEWAY_MS = Date.parse('2026-11-29T12:00:00.000Z')
const MINUTE_MS = 60_000
/** The browser's clock is behind that of the gateway. */
const BEHIND_MS = 7 * MINUTE_MS

/** The page keeps the `fetch` that it finds when it is loaded. */
let fetched: (request: Request) => Promise<Response>
let open: Conversation | undefined
afterEach(() => {
  open?.close()
  open = undefined
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

const json = (body: unknown, status = 200): Response =>
  Response.json(body, { status, headers: { date: new Date(Date.now() + BEHIND_MS).toUTCString() } })

interface Turn {
  readonly id: string
  readonly input: string
  readonly atMs: number
}

/** A browser at a gateway that has these turns and answers each post in this way. */
async function browser(post: () => Answer, turns: readonly Turn[] = [], sent?: object) {
  vi.useFakeTimers({ now: GATEWAY_MS - BEHIND_MS })
  const calls: Call[] = []
  const kept = new Map<string, string>()
  const listed = turns.map(({ id, atMs }) => ({ turn_id: id, created_at: new Date(atMs).toISOString(), ended_at: null }))
  const answer = ({ method, path }: Call): Answer => {
    if (method === 'POST') return path.endsWith('/abort') ? json({ aborted: true }) : post()
    if (path === '/api/turns') return json({ running: [], turns: listed, next: null })
    if (path.endsWith('/stream')) return new Response(`${JSON.stringify({ type: 'aborted', turn_id: null })}\n`)
    const turn = turns.find(({ id }) => path === `/api/turns/${id}`)
    return turn ? json({ input: turn.input, created_at: new Date(turn.atMs).toISOString() }) : json({ error: 'unknown' }, 404)
  }
  const storage = {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value),
    removeItem: (key: string) => void kept.delete(key),
  }
  vi.stubGlobal('localStorage', storage)
  vi.stubGlobal('location', new URL('http://gateway/'))
  vi.stubGlobal('document', { cookie: '' })
  vi.stubGlobal('window', Object.assign(new EventTarget(), { setTimeout, clearTimeout }))
  vi.stubGlobal('requestAnimationFrame', () => 0)
  vi.stubGlobal('cancelAnimationFrame', () => {})
  vi.stubGlobal('fetch', (request: Request) => fetched(request))
  fetched = async (request) => {
    const call = { method: request.method, path: new URL(request.url).pathname, key: request.headers.get('x-idempotency-key') }
    calls.push(call)
    return answer(call)
  }
  if (sent) kept.set('sluice-chat-s', JSON.stringify({ atMs: 1, sent: [sent] }))
  const page = '../page/src/chat/conversation.ts'
  const { Conversation } = (await import(page)) as { readonly Conversation: new (id: string | undefined) => Conversation }
  const conversation = new Conversation('s')
  open = conversation
  const settle = (ms = 0): Promise<unknown> => vi.advanceTimersByTimeAsync(ms)
  await settle(1000)
  return {
    conversation,
    settle,
    posts: () => calls.filter(({ method, path }) => method === 'POST' && path === '/api/turns').map(({ key }) => key),
    aborts: () => calls.flatMap(({ path }) => (path.endsWith('/abort') ? [path.split('/').at(-2)] : [])),
    problems: () => conversation.entries.value.filter(({ kind }) => kind === 'problem'),
  }
}

const taken = (): Response => json({ turn_id: 't1', status_url: '' }, 202)
const message = { id: 'k1', content: ' pay the bill ', atMs: 1 }
const posted = (minutes: number) => ({ ...message, postedAtMs: GATEWAY_MS - minutes * MINUTE_MS })

test('a message that was never posted is posted, however old it is', async () => {
  const { posts } = await browser(taken, [], message)
  expect(posts()).toEqual(['k1'])
})

test('a message without a known answer is posted again with its key for some minutes, and later only by its person', async () => {
  expect((await browser(taken, [], posted(3))).posts()).toEqual(['k1'])
  open?.close()
  const { conversation, posts, problems, settle } = await browser(taken, [], posted(5))
  await settle(10 * MINUTE_MS)
  expect(posts()).toEqual([])
  expect(problems()).toEqual([expect.objectContaining({ text: expect.stringMatching(/^Perhaps sent/), hasTurn: false })])
  conversation.retry('k1')
  await settle(1000)
  expect(posts()).toEqual([expect.not.stringMatching(/^k1$/)])
})

test.each([1, 60])('a message of %i minutes ago whose turn the gateway has, even an ended one, is not posted again', async (minutes) => {
  const { postedAtMs } = posted(minutes)
  const turns = [
    { id: 'before', input: 'pay the bill', atMs: postedAtMs - 1 },
    { id: 'other', input: 'something else', atMs: postedAtMs + 1 },
    { id: 'own', input: 'pay the bill', atMs: postedAtMs + 2 },
  ]
  const { posts, problems } = await browser(taken, turns, posted(minutes))
  expect(posts()).toEqual([])
  expect(problems()).toEqual([expect.objectContaining({ text: 'Aborted.', hasTurn: true })])
})

test('an older turn with the same text is not taken for that of the message', async () => {
  const { postedAtMs } = posted(5)
  const { problems } = await browser(taken, [{ id: 'before', input: 'pay the bill', atMs: postedAtMs - 1 }], posted(5))
  expect(problems()).toEqual([expect.objectContaining({ text: expect.stringMatching(/^Perhaps sent/) })])
})

test('a message that meets a gateway which is away for long is not sent by itself afterwards', async () => {
  let isAway = true
  const { conversation, posts, problems, settle } = await browser(() => (isAway ? json({ error: 'away' }, 503) : taken()))
  conversation.send('hello')
  await settle(3 * MINUTE_MS)
  expect(problems()).toEqual([])
  await settle(2 * MINUTE_MS)
  isAway = false
  const before = posts().length
  await settle(MINUTE_MS)
  expect(posts()).toHaveLength(before)
  expect(problems()).toEqual([expect.objectContaining({ text: expect.stringMatching(/^Perhaps sent/) })])
})

test.each(['stay', 'discard'] as const)('a message that is stopped while it is posted has its turn aborted (%s)', async (what) => {
  const answer = Promise.withResolvers<Response>()
  const { conversation, aborts, problems, settle } = await browser(() => answer.promise)
  conversation.send('hello')
  await settle()
  conversation.abort()
  expect(problems()).toEqual([expect.objectContaining({ text: expect.stringMatching(/^Stopped\. Perhaps it was sent/) })])
  if (what === 'discard') conversation.discard(problems()[0]?.message ?? '')
  answer.resolve(taken())
  await settle(1000)
  expect(aborts()).toEqual(['t1'])
  expect(problems().map(({ text }) => text)).toEqual(what === 'stay' ? ['Aborted.'] : [])
})

test('a message that is stopped before it could be posted again is not posted again', async () => {
  const { conversation, posts, problems, settle } = await browser(() => json({ error: 'away' }, 503))
  conversation.send('hello')
  await settle()
  conversation.abort()
  await settle(MINUTE_MS)
  expect(posts()).toHaveLength(1)
  expect(problems()).toHaveLength(1)
})
