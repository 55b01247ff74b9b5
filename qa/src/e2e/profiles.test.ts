/** The built bundles contain what the specification lists for their profiles. */
import { ROWS } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { run, scratch } from '../daemons/bundle.ts'

/** The flags that a profile adds to those before it. The first list is what every build has. */
const ADDED = {
  minimal: ['observability-metrics'],
  standard: ['channel-fedchat', 'channel-workchat', 'sandbox-fsrestrict', 'mcp', 'dashboard', 'skills', 'schedule', 'web', 'web-push'],
  full: ['browser-native', 'hardware', 'rag-pdf', 'observability-otel', 'provider-google', 'store-postgres'],
} as const
type Profile = keyof typeof ADDED

const PROFILES = Object.keys(ADDED) as Profile[]
const flagsOf = (profile: Profile): readonly string[] =>
  PROFILES.slice(0, PROFILES.indexOf(profile) + 1).flatMap((name): readonly string[] => ADDED[name])

interface Shown {
  readonly feature: string
  readonly compiled: boolean
}

test.each(PROFILES)('%s has every feature without a flag, and the flags of its list', async (profile) => {
  const { dir, dispose } = scratch()
  try {
    const { stdout } = await run(profile, ['features', '--json', '--data-dir', dir])
    const compiled = (JSON.parse(stdout) as Shown[]).filter((row) => row.compiled).map(({ feature }) => feature)
    const wanted = flagsOf(profile)
    const expected = ROWS.filter(([, { flag }]) => flag === null || wanted.includes(flag)).map(([id]) => id)
    expect(compiled.toSorted()).toEqual(expected.map(String).toSorted())
  } finally {
    dispose()
  }
})

test('the channels that the specification always compiles in have no flag', () => {
  const always = ROWS.filter(([, { kind, flag }]) => kind === 'channel' && flag === null).map(([id]) => id.replace('channel-', ''))
  const chats = ['telegram', 'discord', 'slack', 'mattermost', 'signal', 'irc', 'email', 'webhook', 'voice-call']
  const gateway = ['chatapp', 'textrelay', 'bizchat', 'roomchat', 'mailpush']
  const asian = ['dingtalk', 'qq', 'wecom', 'line']
  expect(always.toSorted()).toEqual([...chats, ...gateway, ...asian].toSorted())
})
