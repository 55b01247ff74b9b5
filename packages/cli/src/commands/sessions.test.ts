import { sluiceWith } from '@sluice/qa/daemons/run-command'
import { copyFirstRelease } from '@sluice/qa/first-release'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { always } from '../../../../profiles/always.ts'

let release: ReturnType<typeof copyFirstRelease>
beforeEach(() => {
  release = copyFirstRelease()
})
afterEach(() => release.dispose())

const sluice = (...argv: string[]) => sluiceWith(always)('sessions', ...argv, '--data-dir', release.dataDir)
const json = async (...argv: string[]) => {
  const { code, out, err } = await sluice(...argv, '--json')
  expect(code, err).toBe(0)
  return JSON.parse(out)
}
const GRACE = ['--channel', 'chatapp', '--sender', '+15550002222']
const GRACE_ID = 'channel:chatapp/200000000000002/%2B15550002222/%2B15550002222'
const REFUSED_ID = GRACE_ID.replaceAll('15550002222', '15550003333')

describe('sluice sessions list', () => {
  test('prints conversations, and the cursor of the next page', async () => {
    const all = await json('list')
    expect(all.next).toBeNull()
    expect(all.sessions).toHaveLength(3)
    const { out, err } = await sluice('list', '--limit', '1')
    expect(out.trim().split('\n')).toHaveLength(2)
    const [, cursor = ''] = /older ones: add --cursor (\S+)/.exec(err) ?? []
    const rest = await json('list', '--cursor', cursor)
    expect(rest.sessions).toEqual(all.sessions.slice(1))
    expect((await json('list', '--limit', '1')).next).toBe(cursor)
  })

  test('finds the conversations of a sender', async () => {
    expect((await json('list', ...GRACE)).sessions).toMatchObject([{ session_id: GRACE_ID, channel: 'chatapp', sender: '+15550002222' }])
    expect(await sluice('list', '--channel', 'roomchat')).toMatchObject({ code: 0, out: 'no conversations\n' })
    expect((await sluice('list', '--sender', 'x')).err).toContain('--sender goes with --channel')
    expect((await sluice('list', '--cursor', 'x')).err).toContain('cursor')
  })
})

describe('sluice sessions find', () => {
  test('prints each turn with the words, its conversation and its time', async () => {
    expect((await json('find', 'AND AGAIN')).found).toMatchObject([{ session_id: GRACE_ID, role: 'user', text: 'and again' }])
    const { out } = await sluice('find', 'and again')
    expect(out).toContain(GRACE_ID)
    expect(out).toMatch(/^\S+Z user {2}\S+\n {2}and again\n$/)
    expect(await sluice('find', 'never written')).toMatchObject({ code: 0, out: 'not found\n' })
  })

  test('goes on behind --limit, and looks only at the channel that is named', async () => {
    const { found } = await json('find', 'you said')
    expect(found.length).toBeGreaterThan(1)
    const [, cursor = ''] = /older ones: add --cursor (\S+)/.exec((await sluice('find', 'you said', '--limit', '1')).err) ?? []
    expect((await json('find', 'you said', '--cursor', cursor)).found).toEqual(found.slice(1))
    for (const one of (await json('find', 'you said', '--channel', 'chatapp')).found) expect(one.channel).toBe('chatapp')
    expect((await sluice('find', 'you said', '--sender', 'x')).err).toContain('--sender goes with --channel')
  })
})

describe('sluice sessions show and export', () => {
  test('print the messages, oldest first', async () => {
    const { out } = await sluice('show', GRACE_ID)
    expect(out).toMatch(/sender +\+15550002222/)
    expect(out.indexOf('hello')).toBeLessThan(out.indexOf('and again'))
    expect((await json('show', GRACE_ID, '--limit', '1')).messages).toMatchObject([{ content: 'You said: and again' }])
    const lines = (await sluice('export', GRACE_ID)).out.trim().split('\n')
    expect(lines.map((line) => JSON.parse(line))).toEqual((await json('export', GRACE_ID)).messages)
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ role: 'user', content: 'hello', at: expect.any(String) })
    expect(await sluice('show', 'unknown')).toMatchObject({ code: 1, err: expect.stringContaining("There is no conversation 'unknown'") })
  })
})

describe('sluice sessions erase', () => {
  test('requires one conversation or one person', async () => {
    for (const args of [[], ['--channel', 'chatapp'], [GRACE_ID, ...GRACE]])
      expect(await sluice('erase', ...args)).toMatchObject({ err: expect.stringContaining('name one conversation by its id') })
  })

  test('refuses while a turn of the conversation is unfinished', async () => {
    expect(await sluice('erase', ...GRACE)).toMatchObject({ code: 1, err: expect.stringContaining('runs or waits') })
    expect((await json('list', ...GRACE)).sessions).toHaveLength(1)
  })

  test('erases a conversation and names the copy that still holds it', async () => {
    const { code, out, err } = await sluice('erase', REFUSED_ID)
    expect(code).toBe(0)
    expect(out).toBe('erased: 3 turns said, 3 turns, 3 messages, 3 replies, 0 approvals, 0 memories, 0 files\n')
    expect(err).toMatch(/still in the copy from before an upgrade.*before-schema-/)
    expect(await sluice('erase', REFUSED_ID)).toMatchObject({ code: 1, err: expect.stringContaining('There is no conversation') })
  })

  test('refuses a channel that does not exist, and names the one that is meant', async () => {
    const erase = async (channel: string) => await sluice('erase', '--channel', channel, '--sender', '4711')
    expect(await erase('messenger')).toMatchObject({ code: 2, err: expect.stringContaining("did you mean 'telegram'?") })
    expect(await erase('chatap')).toMatchObject({ code: 2, err: expect.stringContaining("did you mean 'chatapp'?") })
    expect(await erase('telegram')).toMatchObject({ code: 1, err: expect.stringContaining('Nothing is kept of 4711 on telegram') })
  })

  test('erases a person with only a failed message', async () => {
    const person = ['--channel', 'chatapp', '--sender', '+15550004444']
    expect(await json('erase', ...person)).toMatchObject({ messages: 1, turns: 1, said: 0 })
    expect(await sluice('erase', ...person)).toMatchObject({ code: 1, err: expect.stringContaining('Nothing is kept of') })
  })
})
