import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { testSnapshot } from '@sluice/runtime/testing/test-snapshot'
import { expect, test } from 'vitest'
import { type TestGatewayOptions, testGateways } from '../testing.ts'
import { ATTACHMENT_BYTES_MAX } from './attachments.ts'

const gateway = testGateways()
const PNG = Buffer.from('89504e470d0a1a0a', 'hex')

async function arrange(options: TestGatewayOptions = {}) {
  const made = gateway(options)
  const { token } = await made.pair('c', null, 'client')
  const send = async (body: object, bearer = token) => {
    const response = await made.request('/api/attachments', {
      method: 'POST',
      headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return { status: response.status, body: (await response.json()) as { text?: string; code?: string } }
  }
  return { ...made, send }
}

test('a file is saved under a name of its content, and a line names it', async () => {
  const { send, runtime } = await arrange()
  const { status, body } = await send({ name: '../../cat].png\u202e', mime: 'image/png', data: PNG.toString('base64') })
  expect([status, body]).toEqual([
    200,
    {
      text: expect.stringMatching(/^\[Image: \.\. \.\. cat \.png\] attachments\/device_3a[0-9a-z_-]+\/[0-9a-f]{64}\.png$/),
      kind: 'image',
      bytes: 8,
    },
  ])
  const path = body.text?.split('] ')[1] ?? ''
  expect(Buffer.from((await runtime.workspaceOf('main')?.read(path, { bytesMax: 100 })) ?? [])).toEqual(PNG)
})

test('a recording becomes its words where the build transcribes', async () => {
  const service = (name: string) => (name === 'transcribe' ? async () => 'hello  there' : undefined)
  const { send } = await arrange({ snapshot: { service: service as never } })
  const { body } = await send({ name: 'note.ogg', mime: 'audio/ogg', data: PNG.toString('base64') })
  expect(body.text).toBe('[Voice] hello there')
})

test('a file that is too large, or is not Base64, is refused', async () => {
  const { send } = await arrange()
  const tooLarge = await send({ name: 'x', data: Buffer.alloc(ATTACHMENT_BYTES_MAX + 1).toString('base64') })
  expect([tooLarge.status, tooLarge.body.code]).toEqual([413, 'too_large'])
  expect((await send({ name: 'x', data: 'no base 64!' })).status).toBe(400)
  expect((await send({ name: '', data: '' })).status).toBe(400)
})

test('a client chooses no other agent', async () => {
  const { registry } = testSnapshot()
  const { send, pair } = await arrange({ snapshot: { registries: new Map(['main', 'support'].map((name) => [name, registry])) } })
  const file = { name: 'x.txt', mime: 'text/plain', data: 'eA==', agent: 'support' }
  expect((await send(file)).status).toBe(403)
  const { token } = await pair('o')
  expect((await send(file, token)).body.text).toMatch(/^\[Document: x\.txt\] attachments\//)
})

test('a device saves thirty files a minute, and takes nothing from another; requests without a token take nothing from either', async () => {
  const { send, pair } = await arrange()
  const file = { name: 'x.txt', data: 'eA==' }
  for (let count = 0; count < 31; count++) expect((await send(file, 'no such token')).status).toBe(401)
  for (let count = 0; count < 30; count++) expect((await send(file)).status).toBe(200)
  expect((await send(file)).status).toBe(429)
  const { token } = await pair('another')
  expect((await send(file, token)).status).toBe(200)
})

test('without pairing, each address saves thirty files a minute', async () => {
  const { request } = gateway({ config: { require_pairing: false } })
  const body = JSON.stringify({ name: 'x.txt', data: 'eA==' })
  const headers = { host: 'localhost', 'content-type': 'application/json' }
  const send = async (peer: string) => (await request('/api/attachments', { method: 'POST', peer, headers, body })).status
  for (let count = 0; count < 30; count++) expect(await send('10.0.0.1')).toBe(200)
  expect([await send('10.0.0.1'), await send('10.0.0.2')]).toEqual([429, 200])
})

test('a client beyond its share is answered 429, and an operator has no share', async () => {
  const { send, pair } = await arrange({ shares: { attachmentBytes: 3 } })
  const file = { name: 'x.txt', data: Buffer.from('four').toString('base64') }
  const refused = await send(file)
  expect([refused.status, refused.body]).toEqual([
    429,
    expect.objectContaining({ code: 'share_used', error: expect.stringContaining('[limits] attachments_mb') }),
  ])
  const { token } = await pair('o')
  expect((await send(file, token)).status).toBe(200)
})

/** The data directory of a gateway. */
async function dataDirOf(runtime: Awaited<ReturnType<typeof arrange>>['runtime']): Promise<string> {
  await using file = await runtime.files.receive()
  return join((await file.finish()).path, '../../..')
}

test('nothing of a file is read for a client whose share is used up', async () => {
  const { send, request, runtime, pair } = await arrange({ shares: { attachmentBytes: 20_000 } })
  const { token } = await pair('d', null, 'client')
  const { body: saved } = await send({ name: 'x.txt', data: 'QQ==' }, token)
  const folder = join(await dataDirOf(runtime), 'files/main', dirname(saved.text?.split('] ')[1] ?? ''))
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'kept'), Buffer.alloc(20_000))
  let pieces = 0
  async function* body() {
    pieces++
    yield Buffer.from('{"name":"y.txt","data":"')
  }
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const refused = await request('/api/attachments', { method: 'POST', headers, body: body() })
  expect([refused.status, pieces]).toEqual([429, 0])
})

test('a body that is refused leaves no file behind', async () => {
  const { send, runtime } = await arrange({ shares: { attachmentBytes: 100_000 } })
  const data = Buffer.alloc(90_000).toString('base64')
  expect((await send({ name: 'x.txt', data: `${data}????` })).status).toBe(400)
  expect((await send({ name: 'x.txt', data: Buffer.alloc(200_000).toString('base64') })).status).toBe(429)
  expect((await send({ name: 7, data })).status).toBe(400)
  expect((await send({ name: 'x.txt', data })).status).toBe(200)
  expect(readdirSync(join(await dataDirOf(runtime), 'files/.incoming'))).toEqual([])
})
