import type { ContentBlock } from '@modelcontextprotocol/client'
import { AppError, ownerFolder } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { toolContext } from '@sluice/testkit/tool'
import { expect, test } from 'vitest'
import { resultText } from './result-text.ts'
import { savePictures } from './save-pictures.ts'

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const picture = (mimeType = 'image/png', data = PIXEL): ContentBlock => ({ type: 'image', mimeType, data })
const text: ContentBlock = { type: 'text', text: 'a plan' }

const contextOf = (session: string | null) => ({ ...toolContext(undefined, testHost().by), session, turn: 't1' })

test('a picture is kept in the results of the session, and the text names it', async () => {
  const context = contextOf('s')
  const content = [text, picture()]
  const saved = await savePictures(content, 'mcp__a__plan', context)
  const path = saved.get(content[1] as ContentBlock) ?? ''
  expect(path).toMatch(new RegExp(`^results/${ownerFolder('s')}/mcp__a__plan-[0-9a-f]{32}\\.png$`))
  expect(await context.workspace.read(path, { bytesMax: 1000 })).toEqual(new Uint8Array(Buffer.from(PIXEL, 'base64')))
  expect(resultText({ content }, saved)).toBe(`a plan\n[image ${path}]`)
})

test.each<[string, ContentBlock]>([
  ['whose type is in capitals', picture('IMAGE/PNG')],
  ['of the type image/jpg', picture('image/jpg')],
  ['in an embedded resource', { type: 'resource', resource: { uri: 'shot://1', mimeType: 'image/png', blob: PIXEL } }],
])('a picture %s is kept', async (_what, block) => {
  const saved = await savePictures([block], 't', contextOf('s'))
  expect(resultText({ content: [block] }, saved)).toMatch(/^\[image results\/.*\.(?:png|jpg)\]$/)
})

test('an embedded resource that is no picture is described', async () => {
  const content: ContentBlock[] = [{ type: 'resource', resource: { uri: 'x://1', mimeType: 'application/zip', blob: PIXEL } }]
  expect((await savePictures(content, 't', contextOf('s'))).size).toBe(0)
})

test.each([
  ['of an unknown type', [picture('image/x-raw')]],
  ['without bytes', [picture('image/png', '')]],
  ['that is too large', [picture('image/png', 'A'.repeat(8 * 1024 * 1024))]],
])('a picture %s is described', async (_what, content) => {
  const saved = await savePictures(content, 't', contextOf('s'))
  expect(saved.size).toBe(0)
  expect(resultText({ content }, saved)).toMatch(/^\[image image\/.*, not shown\]$/)
})

test('at most four pictures of a result are kept', async () => {
  const content = Array.from({ length: 6 }, (_, index) => picture('image/png', Buffer.from(`picture ${index}`).toString('base64')))
  expect((await savePictures(content, 't', contextOf('s'))).size).toBe(4)
})

test('a picture of a turn without a session is kept in the results of the turn', async () => {
  const one = picture()
  expect((await savePictures([one], 't', contextOf(null))).get(one)).toMatch(/^results\/turn_3at1\/t-/)
})

test('nothing is kept where the workspace refuses it', async () => {
  const context = contextOf('s')
  const write = () => Promise.reject(new AppError('forbidden', 'no'))
  expect((await savePictures([picture()], 't', { ...context, workspace: { ...context.workspace, write } })).size).toBe(0)
})
