import { attachmentPath, type ModelCallOptions } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { expect, test } from 'vitest'
import { memoryBooks } from '../testing/memory-books.ts'
import { httpError, scriptedModel } from '../testing/scripted-model.ts'
import { request, testAgent } from '../testing/test-agent.ts'
import { attachedFiles } from './attached-files.ts'

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

test('reads the files of the kinds that the model takes, each once', async () => {
  const asked: string[] = []
  const named = `${text} ${CAT} ${FORMER} attachments/1111111111111111.docx ../${'2'.repeat(16)}.png`
  const { log, logs } = testHost()
  const found = await attachedFiles({ text: named, kinds: ['image', 'pdf'], workspace: reading(asked), log })
  expect(found).toEqual([
    { type: 'file', mediaType: 'image/png', filename: CAT.slice(CAT.lastIndexOf('/') + 1), data: { type: 'data', data: bytes } },
  ])
  expect(asked).toEqual([CAT, FORMER])
  expect(logs).toMatchObject([{ level: 'warn', message: 'attachment not sent to the model' }])
  expect(await attachedFiles({ text: named, kinds: ['audio'], workspace: reading(), log })).toEqual([])
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

test('a model that refuses the request with files is asked again without them', async () => {
  const model = scriptedModel([httpError(400, 'image input is not supported'), { text: 'a file' }])
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
