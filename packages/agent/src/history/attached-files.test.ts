import { attachmentPath, fileNote, type MediaKind, type ModelCallOptions, type ModelMessage } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { expect, test } from 'vitest'
import { memoryBooks } from '../testing/memory-books.ts'
import { httpError, scriptedModel } from '../testing/scripted-model.ts'
import { request, testAgent } from '../testing/test-agent.ts'
import { filesFit, showFiles } from './attached-files.ts'

/** The caller of the turns. */
const owner = 'local'
const CAT = attachmentPath(owner, Buffer.from('cat'), 'png')
const FORMER = 'attachments/0000000000000000.pdf'
const text = `look\n[Image: cat.png] ${CAT}`
const bytes = new Uint8Array([1, 2, 3])

const reading = (asked: string[] = []) => ({
  async read(path: string) {
    asked.push(path)
    if (path !== CAT) throw new Error('no such file')
    return bytes
  },
})

const files = (options: ModelCallOptions | undefined) =>
  options?.prompt.flatMap((message) => (message.role === 'user' ? message.content.filter(({ type }) => type === 'file') : []))

const show = (prompt: ModelMessage[], kinds: readonly MediaKind[], from = reading()) => {
  const { log, logs } = testHost()
  return { logs, shown: showFiles(prompt, { kinds, workspace: from, log, read: new Map(), isRefused: () => false }) }
}
const user = (said: string): ModelMessage => ({ role: 'user', content: [{ type: 'text', text: said }] })
const CAT_PART = {
  type: 'file',
  mediaType: 'image/png',
  filename: CAT.slice(CAT.lastIndexOf('/') + 1),
  data: { type: 'data', data: bytes },
}

test('reads the files of the kinds that the model takes, each once', async () => {
  const asked: string[] = []
  const named = `${text} ${CAT} ${FORMER} attachments/1111111111111111.docx ../${'2'.repeat(16)}.png`
  const { shown, logs } = show([user(named)], ['image', 'pdf'], reading(asked))
  expect(await shown).toEqual({ prompt: [{ role: 'user', content: [{ type: 'text', text: named }, CAT_PART] }], paths: [CAT] })
  expect(asked).toEqual([CAT, FORMER])
  expect(logs).toMatchObject([{ level: 'warn', message: 'attachment not sent to the model' }])
  expect(await show([user(named)], ['audio']).shown).toEqual({ prompt: [user(named)], paths: [] })
})

test('shows the pictures of a result in a message after it', async () => {
  const result: ModelMessage = {
    role: 'tool',
    content: [
      {
        type: 'tool-result',
        toolCallId: '1',
        toolName: 'look',
        output: { type: 'text', value: 'saved' },
        ...fileNote({ used: [CAT, 'a.txt'] }),
      },
    ],
  }
  const { prompt } = await show([user('look'), result], ['image']).shown
  expect(prompt.slice(0, 2)).toEqual([user('look'), result])
  expect(prompt[2]).toMatchObject({ role: 'user', content: [{ type: 'text' }, CAT_PART] })
  expect((await show([user('look'), result], ['pdf']).shown).prompt).toHaveLength(2)
})

test('shows the newest eight files of eight megabytes together', async () => {
  const path = (at: number) => `attachments/local/${String(at).repeat(64).slice(0, 64)}.png`
  const large = { read: async () => new Uint8Array(3 * 1024 * 1024) }
  const prompt = Array.from({ length: 9 }, (_, at) => user(`[Image: x.png] ${path(at)}`))
  expect((await show(prompt, ['image'], large as never).shown).paths).toEqual([path(8), path(7)])
  const small = { read: async () => bytes }
  expect((await show(prompt, ['image'], small as never).shown).paths).toHaveLength(8)
  expect(filesFit(prompt, ['image'], new Map())).toBe(false)
  expect(filesFit(prompt.slice(1), ['image'], new Map())).toBe(true)
  expect(filesFit(prompt, ['pdf'], new Map())).toBe(true)
  expect(filesFit(prompt.slice(6), ['image'], new Map([[path(7), 9 * 1024 * 1024]]))).toBe(false)
})

test('a picture is still there two messages later, and the request extends the one before it', async () => {
  const model = scriptedModel([{ text: 'a cat' }, { text: 'yes' }, { text: 'grey' }])
  const { agent } = testAgent({ models: [model], settings: [{ kind: 'scripted', media: ['image'] }], workspace: reading() })
  for (const said of [text, 'Sure?', 'Which colour?']) await agent.run(request(said, { session: 'room', owner }))
  const [first, , third] = model.asked
  expect(files(third)).toMatchObject([{ mediaType: 'image/png' }])
  expect(third?.prompt.slice(0, first?.prompt.length)).toEqual(first?.prompt)
})

test('nine pictures are a reason for a summary', async () => {
  const books = memoryBooks()
  const path = (at: number) => `attachments/local/${String(at).repeat(64).slice(0, 64)}.png`
  books.histories.set(
    'room',
    Array.from({ length: 9 }, (_, at) => user(`[Image: x.png] ${path(at)}`)),
  )
  const model = scriptedModel([({ prompt }) => ({ text: JSON.stringify(prompt).includes('memory of an assistant') ? 'nine cats' : 'yes' })])
  const { agent } = testAgent({ models: [model], settings: [{ kind: 'scripted', media: ['image'] }], books, workspace: reading() })
  await agent.run(request('And now?', { session: 'room', owner }))
  expect(books.summaries.get('room')).toMatchObject({ text: 'nine cats', upTo: 9 })
  expect(files(model.asked.at(-1))).toEqual([])
})

test('a model that takes images gets the image; the stored message has only its path', async () => {
  const model = scriptedModel([{ text: 'a cat' }])
  const books = memoryBooks()
  const { agent } = testAgent({ models: [model], settings: [{ kind: 'scripted', media: ['image'] }], books, workspace: reading() })
  await agent.run(request(text, { session: 'room', owner }))
  expect(files(model.asked[0])).toMatchObject([{ mediaType: 'image/png' }])
  expect(books.ends[0]?.messages[0]).toEqual({ role: 'user', content: [{ type: 'text', text }] })
})

test('a model that takes none gets the path', async () => {
  const model = scriptedModel([{ text: 'a file' }])
  const { agent } = testAgent({ models: [model], workspace: reading() })
  await agent.run(request(text, { owner }))
  expect(files(model.asked[0])).toEqual([])
})

test.each([
  [400, 'image input is not supported'],
  [413, 'Request Entity Too Large'],
])('a model that refuses the request with files is asked again without them: HTTP %d', async (status, message) => {
  const model = scriptedModel([httpError(status, message), { text: 'a file' }])
  const setup = testAgent({ models: [model], settings: [{ kind: 'scripted', media: ['image'] }], workspace: reading() })
  const ended = setup.agent.run(request(text, { owner }))
  for (let passedMs = 0; model.asked.length < 2 && passedMs < 10_000; passedMs += 500) await setup.clock.advance(500)
  expect(await ended).toMatchObject({ text: 'a file' })
  expect(model.asked.map((asked) => files(asked)?.length)).toEqual([1, 0])
})

test('a model gets no file of another person whose path the text names', async () => {
  const model = scriptedModel([{ text: 'no cat' }])
  const { agent, logs } = testAgent({ models: [model], settings: [{ kind: 'scripted', media: ['image'] }], workspace: reading() })
  await agent.run(request(text, { owner: 'device:eve' }))
  expect(files(model.asked[0])).toEqual([])
  expect(logs).toMatchObject([{ message: 'attachment not sent to the model' }])
})
