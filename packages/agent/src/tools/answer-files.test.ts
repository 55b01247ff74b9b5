import { AppError, answerFilesIn, attachmentPath, defineTool, type MarkedFile, type Tool, type Workspace } from '@sluice/sdk'
import { agentWorkspace, memoryWorkspace } from '@sluice/testkit/memory-workspace'
import * as v from 'valibot'
import { expect, test } from 'vitest'
import { type MemoryBooks, memoryBooks } from '../testing/memory-books.ts'
import { type Reply, scriptedModel } from '../testing/scripted-model.ts'
import { request, testAgent } from '../testing/test-agent.ts'

const SENT = attachmentPath('owner', Buffer.from('PNG'), 'png')
const OF_OTHERS = attachmentPath('eve', Buffer.from('PNG'), 'png')
const FORMER = 'attachments/0123456789abcdef.png'
const FILES = {
  'customers.csv': 'secret',
  'notes.txt': 'notes',
  [SENT]: 'PNG',
  [OF_OTHERS]: 'PNG',
  [FORMER.replace('/', '/owner/')]: 'PNG',
}

const fileTool = (name: string, risk: Tool['risk'], run: (path: string, workspace: Workspace) => Promise<string>): Tool =>
  defineTool({
    name,
    description: name,
    input: v.object({ path: v.string() }),
    risk,
    egress: false,
    untrusted: false,
    run: ({ path }, { workspace }) => run(path, workspace),
  })

const TOOLS = [
  fileTool('file_read', 'read', async (path, workspace) => Buffer.from(await workspace.read(path, { bytesMax: 100 })).toString()),
  fileTool('file_write', 'write', async (path, workspace) => workspace.write(path, Buffer.from('new')).then(() => 'written')),
  fileTool('file_list', 'read', async (path, workspace) => JSON.stringify(await workspace.list(path, { limit: 10 }))),
  fileTool('say', 'read', async (path) => path),
  fileTool('broken', 'read', async (path, workspace) => {
    await workspace.read(path, { bytesMax: 100 })
    throw new AppError('invalid_request', 'it is no text')
  }),
]

const call = (name: string, path: string): Reply => ({ calls: [{ name, input: { path } }] })

interface Case {
  readonly replies: readonly Reply[]
  readonly text?: string
  readonly tools?: readonly string[]
  readonly workspace?: Partial<Workspace>
}

const agentWith = (books: MemoryBooks, replies: readonly Reply[], workspace: Partial<Workspace> = {}) =>
  testAgent({
    books,
    tools: TOOLS,
    models: [scriptedModel(replies)],
    workspace: agentWorkspace({ ...memoryWorkspace(FILES), ...workspace }),
    policy: { level: 'full' },
  }).agent

/** Returns the files that the answer of the first turn marks, as its last message notes them. */
const markedIn = ({ ends }: MemoryBooks): readonly MarkedFile[] => answerFilesIn(ends[0]?.messages.at(-1) ?? {}).marked ?? []

/** Runs a turn; resolves to the files that its answer marks. */
async function answer({ replies, text = 'go', tools, workspace }: Case): Promise<readonly MarkedFile[]> {
  const books = memoryBooks()
  await agentWith(books, replies, workspace).run(request(text, { session: 's', ...(tools && { tools }) }))
  return markedIn(books)
}

const attached = (files: readonly MarkedFile[]) => files.filter(({ refusal }) => refusal === undefined).map(({ path }) => path)

test.each<[what: string, Case, string[]]>([
  ['nothing of which it only knows the name', { replies: [{ text: '[FILE:customers.csv]' }] }, []],
  ['nothing of which a tool said the name', { replies: [call('say', 'customers.csv'), { text: '[FILE:customers.csv]' }] }, []],
  ['nothing that it only listed', { replies: [call('file_list', '.'), { text: '[FILE:customers.csv] [FILE:notes.txt]' }] }, []],
  ['what it read', { replies: [call('file_read', 'notes.txt'), { text: '[FILE:notes.txt] [FILE:customers.csv]' }] }, ['notes.txt']],
  [
    'what it read, by any spelling',
    { replies: [call('file_read', './notes.txt'), { text: '[FILE:/workspace//notes.txt]' }] },
    ['/workspace//notes.txt'],
  ],
  ['what it read although the call failed', { replies: [call('broken', 'notes.txt'), { text: '[IMAGE:notes.txt]' }] }, ['notes.txt']],
  ['what it wrote', { replies: [call('file_write', 'out/new.txt'), { text: '[FILE:out/new.txt]' }] }, ['out/new.txt']],
  ['a file of the message', { text: `[Image: a] ${SENT}`, replies: [{ text: `[IMAGE:${SENT}]` }] }, [SENT]],
  ['a file that an earlier release saved', { text: `[Image: a] ${FORMER}`, replies: [{ text: `[IMAGE:${FORMER}]` }] }, [FORMER]],
  ['no file of others that the message names', { text: `[Image: a] ${OF_OTHERS}`, replies: [{ text: `[IMAGE:${OF_OTHERS}]` }] }, []],
  ['no file of others', { replies: [call('file_read', OF_OTHERS), { text: `[IMAGE:${OF_OTHERS}]` }] }, []],
  [
    'nothing without the right to read files',
    { tools: ['file_write'], replies: [call('file_write', 'new.txt'), { text: '[FILE:new.txt]' }] },
    [],
  ],
  ['nothing that does not exist', { replies: [call('file_write', 'new.txt'), { text: '[FILE:gone.txt]' }] }, []],
])('an answer attaches %s', async (_what, given, expected) => {
  expect(attached(await answer(given))).toEqual(expected)
})

test('an answer attaches what was changed after a call with effects began, which a command may have done', async () => {
  const opened = (modifiedAtMs: number): Partial<Workspace> => ({
    open: async (path, options) => ({ ...(await memoryWorkspace(FILES).open(path, options)), modifiedAtMs }),
  })
  const replies = [call('file_write', 'script.py'), { text: '[FILE:notes.txt]' }]
  const far = Number.MAX_SAFE_INTEGER
  expect(attached(await answer({ replies, workspace: opened(far) }))).toEqual(['notes.txt'])
  expect(attached(await answer({ replies, workspace: opened(0) }))).toEqual([])
  expect(
    attached(await answer({ replies: [call('file_read', 'customers.csv'), { text: '[FILE:notes.txt]' }], workspace: opened(far) })),
  ).toEqual([])
})

test('the reason names the file and the cure', async () => {
  const [first] = await answer({ replies: [{ text: '[FILE:customers.csv]' }] })
  expect(first?.refusal).toBe("'customers.csv' was neither read nor written for this answer: the agent must call file_read on it first")
})

test('a turn that resumes after a restart attaches what it read before, and notes it with its last message', async () => {
  const resumed = async (books: MemoryBooks, replies: readonly Reply[]) => {
    const context = { trace: request('').trace }
    books.queued.set('t', { id: 't', agent: 'main', sessionId: 's', source: 'test', input: 'go', context, createdAtMs: 0 })
    const agent = agentWith(books, replies)
    await agent.resume(books)
    await agent.ended('t')
  }
  const before = memoryBooks()
  const kept: string[] = []
  before.turns.checkpoint = async (_, messages) => void kept.push(JSON.stringify(messages))
  await resumed(before, [call('file_read', 'notes.txt'), { text: 'not yet' }])
  const after = memoryBooks()
  after.checkpoints.set('t', JSON.parse(kept.at(-1) ?? ''))
  await resumed(after, [{ text: '[FILE:notes.txt] [FILE:customers.csv]' }])
  expect(markedIn(after)).toEqual([{ path: 'notes.txt' }, { path: 'customers.csv', refusal: expect.stringContaining('customers.csv') }])
})
