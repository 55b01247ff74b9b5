import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { baseUrlOf, sectionProblems, WORKCHAT, WORKCHAT_CN, workchatCnSection, workchatSection } from './config.ts'

const MINIMAL = { app_id: 'cli_1', app_secret: 's' }
const parse = (more: object = {}) => v.parse(workchatSection.schema, { ...MINIMAL, ...more })

test('only the credentials are required', () => {
  expect(parse()).toMatchObject({
    receive_mode: 'websocket',
    allowed_users: [],
    ack_reactions: true,
    mention_only: false,
    thread_replies: false,
    stream_mode: 'off',
    draft_update_interval_ms: 1000,
  })
  for (const key of ['app_id', 'app_secret']) {
    expect(v.safeParse(workchatSection.schema, { ...MINIMAL, [key]: undefined }).success).toBe(false)
  }
})

test('the platform is that of the region, unless an address is given', () => {
  expect(baseUrlOf(parse(), WORKCHAT)).toBe('https://open.larksuite.com')
  expect(baseUrlOf(parse({ use_cn_region: true }), WORKCHAT)).toBe('https://open.feishu.cn')
  expect(baseUrlOf(parse({ use_cn_region: false }), WORKCHAT)).toBe('https://open.larksuite.com')
  expect(baseUrlOf(parse(), WORKCHAT_CN)).toBe('https://open.feishu.cn')
  expect(baseUrlOf(parse({ api_url: 'http://127.0.0.1:8/' }), WORKCHAT_CN)).toBe('http://127.0.0.1:8')
})

test('the section for China has no flag for the region', () => {
  const { entries } = workchatCnSection.schema as unknown as { entries: object }
  expect(Object.keys(entries)).not.toContain('use_cn_region')
  expect(Object.keys(entries)).toEqual(Object.keys(workchatSection.schema.entries).filter((key) => key !== 'use_cn_region'))
})

test('edits cannot be more frequent than the platform accepts', () => {
  expect(() => parse({ draft_update_interval_ms: 249 })).toThrow()
  expect(parse({ draft_update_interval_ms: 250 }).draft_update_interval_ms).toBe(250)
})

describe('both sections', () => {
  const both = (one: string, two: string) =>
    sectionProblems(
      new Map([
        [WORKCHAT, parse({ app_id: one })],
        [WORKCHAT_CN, parse({ app_id: two })],
      ]),
    )

  test('may name two apps', () => {
    expect(both('cli_1', 'cli_2')).toEqual([])
    expect(sectionProblems(new Map([[WORKCHAT, parse()]]))).toEqual([])
  })

  test('must not name the same app', () => {
    expect(both('cli_1', 'cli_1')).toEqual([{ section: WORKCHAT_CN, key: 'app_id', message: expect.stringContaining(`[${WORKCHAT}]`) }])
  })
})
