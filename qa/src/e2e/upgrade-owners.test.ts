/**
 * Serves a data directory from before files had owners and calls had deciders: nothing is lost, each person keeps their files, and a
 * question that waits is decided by the persons who may decide it today. See docs/contract.md#storage.
 */
import { createHmac } from 'node:crypto'
import { existsSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Daemon, startDaemon } from '@sluice/daemon'
import { type TestClock, testClock } from '@sluice/testkit/clock'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { always } from '../../../profiles/always.ts'
import { type BeforeOwnersFacts, type CopiedFixture, copyBeforeOwners, type FixtureQuestion } from '../first-release.ts'

const SECRET = 'webhook-secret-0001'

let platform: Server
let replies: { readonly recipient: string; readonly content: string }[]
let before: CopiedFixture<BeforeOwnersFacts>
let clock: TestClock
let daemon: Daemon

beforeAll(async () => {
  replies = []
  platform = createServer(async (request, response) => {
    replies.push(JSON.parse(Buffer.concat(await request.toArray()).toString()))
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"id":"r"}')
  })
  await new Promise<void>((ready) => platform.listen(0, '127.0.0.1', ready))
  before = copyBeforeOwners(`http://127.0.0.1:${(platform.address() as AddressInfo).port}/`)
  clock = testClock(before.facts.killedAtMs + 60_000)
  const { dataDir, configFile } = before
  const options = { features: always, dataDir, configFile, env: {}, profile: 'test', version: '0.0.0', clock, host: '127.0.0.1', port: 0 }
  daemon = await startDaemon(options)
})
afterAll(async () => {
  await daemon.stop()
  platform.close()
  before.dispose()
})

async function until<T>(find: () => Promise<T | undefined | false>): Promise<T> {
  const endMs = performance.now() + 15_000
  for (;;) {
    const found = await find()
    if (found !== undefined && found !== false) return found
    if (performance.now() > endMs) throw new Error(`The condition did not hold within 15 s: ${find}`)
    await clock.advance(20)
    await sleep(2)
  }
}

type Person = 'laptop' | 'phone'

async function call(person: Person, method: string, path: string, body?: object, headers: Record<string, string> = {}) {
  const response = await fetch(`${daemon.url}${path}`, {
    method,
    headers: { 'content-type': 'application/json', authorization: `Bearer ${before.facts.tokens[person]}`, ...headers },
    ...(body && { body: JSON.stringify(body) }),
  })
  return { status: response.status, text: await response.text() }
}

const useTool = (person: Person, tool: string, input: object) =>
  call(person, 'POST', '/webhook', { message: `/tool ${tool} ${JSON.stringify(input)}` }, { 'x-session-id': 'tools' })

const decide = (person: Person, [run, step]: FixtureQuestion) => call(person, 'POST', `/api/approvals/${run}/${step}`, { approved: true })

const stateOf = async ([runId, stepId]: FixtureQuestion) => (await daemon.runtime.store.approvals.get({ runId, stepId }))?.state

async function say(sender: string, content: string): Promise<void> {
  const body = JSON.stringify({ id: `${sender}: ${content}`, sender, content })
  const signature = createHmac('sha256', SECRET).update(body).digest('hex')
  const headers = { 'content-type': 'application/json', 'x-webhook-signature': `sha256=${signature}` }
  expect((await fetch(`${daemon.url}/webhook/channel`, { method: 'POST', body, headers })).status).toBe(200)
}

test('the database is intact after the upgrade', async () => {
  expect(await daemon.runtime.store.check()).toEqual([])
  expect(await daemon.runtime.store.sops.verify()).toMatchObject({ broken: null })
})

test('each person keeps their files under the paths that their conversations name', async () => {
  const { files } = before.facts
  const download = (person: Person, session: string, path: string) =>
    call(person, 'GET', `/api/sessions/${session}/file?path=${encodeURIComponent(path)}`)
  expect(await download('phone', 'diary', files.phone)).toEqual({ status: 200, text: 'PAYSLIP OF THE PHONE' })
  expect(await download('laptop', 'work', files.laptop)).toEqual({ status: 200, text: 'PLAN OF THE LAPTOP' })
  expect((await useTool('phone', 'file_read', { path: files.phone })).text).toContain('PAYSLIP')
  expect((await useTool('laptop', 'file_read', { path: files.unnamed })).text).toContain('NAMED NOWHERE')
})

test('a client opens neither the files of another person nor files that no conversation names', async () => {
  const { files } = before.facts
  for (const path of [files.laptop, files.unnamed])
    expect((await useTool('phone', 'file_read', { path })).text).not.toMatch(/PLAN OF|NAMED NOWHERE/)
})

/** The persons whom the earlier build asked may not decide these commands now: one is a stranger, and no sandbox works. */
test.each([
  ['stranger', 'eve'],
  ['listed', 'ada'],
] as const)('a command of a %s sender is asked again, and only an operator decides it', async (question, sender) => {
  const [run, step] = before.facts.questions[question]
  const again = [run, `${step}.operator`] as const
  await until(async () => (await stateOf(again)) === 'pending')
  const told = replies.length
  await say(sender, 'approve')
  await until(async () => replies.length > told)
  expect(existsSync(join(before.dataDir, `workspace/of-${sender}`))).toBe(false)
  expect(await stateOf(again)).toBe('pending')
  expect((await decide('phone', again)).status).toBe(404)
  expect((await decide('laptop', again)).status).toBe(200)
  await until(async () => replies.some(({ recipient, content }) => recipient === sender && content.startsWith('Offline provider')))
  await until(async () => (await stateOf([run, step])) !== 'pending')
})

test('an accepted procedure goes on with the answer of an operator, and not with that of a client', async () => {
  const { procedure } = before.facts.questions
  expect((await decide('phone', procedure)).status).toBe(404)
  expect((await decide('laptop', procedure)).status).toBe(200)
  await until(async () => existsSync(join(before.dataDir, 'workspace/shipped.txt')))
})

test('memories and accepted skills are kept', async () => {
  expect((await useTool('phone', 'memory_recall', { query: 'colour' })).text).toContain('The phone likes blue')
  expect((await useTool('laptop', 'memory_recall', { query: 'colour' })).text).not.toContain('The phone likes blue')
  expect(existsSync(join(before.dataDir, 'skills/tidy/SKILL.md'))).toBe(true)
})
