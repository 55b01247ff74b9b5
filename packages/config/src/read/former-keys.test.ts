import { AppError } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import { gatewaySection } from '../sections/core-sections.ts'
import { providerSection } from '../sections/provider-section.ts'
import { encrypt, load } from '../testing/sample-sections.ts'
import { type FormerKey, formerKeyHint } from './former-keys.ts'

const FORMER: readonly FormerKey[] = [
  { key: 'gateway.bind_port', becomes: 'gateway.port', since: '0.3.0' },
  { key: 'gateway.turbo', since: '0.3.0', reason: 'Every daemon is as fast' },
  { key: 'web.bind', becomes: 'gateway.host', since: '0.3.0' },
  { key: 'web', since: '0.3.0' },
  { key: 'channels_config.talk', becomes: 'channels_config.roomchat', since: '0.3.0' },
  { key: 'provider.fallback.*.name', becomes: 'provider.fallback.*.model', since: '0.3.0' },
  { key: 'provider.fallback.*.password', becomes: 'provider.fallback.*.api_key', since: '0.3.0' },
]
const loaded = (text: string) => load(text, { formerKeys: FORMER })

describe('a renamed key', () => {
  test('keeps its value and is named by a warning', async () => {
    const config = await loaded('[gateway]\nbind_port = 4000\n')
    expect(config.core(gatewaySection).port).toBe(4000)
    expect(config.source(['gateway', 'port'])).toEqual({ kind: 'file' })
    expect(config.warnings).toEqual([
      '`gateway.bind_port` is called `gateway.port` since 0.3.0. Rename it, because a later release refuses it',
    ])
  })

  test('is ignored when the present key is set, too', async () => {
    const config = await loaded('[gateway]\nbind_port = 4000\nport = 5000\n')
    expect(config.core(gatewaySection).port).toBe(5000)
    expect(config.warnings).toEqual([
      '`gateway.bind_port` is ignored, because `gateway.port` has replaced it since 0.3.0 and is set, too. Delete it',
    ])
  })

  test('may move to another section', async () => {
    const config = await loaded('[web]\nbind = "127.0.0.2"\n')
    expect(config.core(gatewaySection).host).toBe('127.0.0.2')
    expect(config.warnings).toHaveLength(2)
  })

  test('with a wrong value is reported at its place in the file', async () => {
    const error: unknown = await loaded('# a comment\n[gateway]\nbind_port = 70000\n').catch((caught: unknown) => caught)
    expect(error).toBeInstanceOf(AppError)
    expect(error).toMatchObject({ code: 'config_invalid', message: expect.stringMatching(/^config\.toml:3:.*gateway\.port/) })
  })

  test('changes nothing below a value that is not a table', async () => {
    await expect(loaded('gateway = 5\n[web]\nbind = "::1"\n')).rejects.toThrow('`gateway` is a section')
  })
})

test('a section may be renamed as a whole, with its encrypted and its plain secrets', async () => {
  const sealed = encrypt('token-1', 'channels_config.talk.app_token')
  const section = (token: string) => `[channels_config.talk]\nbase_url = "https://chat.example"\napp_token = "${token}"\n`
  const config = await loaded(section(sealed))
  const state = config.of('channel-roomchat') as { value: { app_token: { reveal(): string } } }
  expect(state.value.app_token.reveal()).toBe('token-1')
  expect((await loaded(section('plain'))).plainSecrets).toEqual([])
})

test('a key of each entry of a list keeps its entry, and its encrypted secret', async () => {
  const entry = (kind: string, name: string) =>
    `[[provider.fallback]]\nkind = "${kind}"\nname = "${name}"\npassword = "${encrypt(`key-${name}`, 'provider.fallback.password')}"\n`
  const { fallback } = (await loaded(entry('groq', 'a') + entry('xai', 'b'))).core(providerSection)
  expect(fallback.map(({ kind, model, api_key }) => [kind, model, api_key?.reveal()])).toEqual([
    ['groq', 'a', 'key-a'],
    ['xai', 'b', 'key-b'],
  ])
})

test('a removed key has no effect, and the warning says why', async () => {
  expect((await loaded('[gateway]\nturbo = true\n')).warnings).toEqual([
    '`gateway.turbo` has no effect since 0.3.0: Every daemon is as fast. Delete it, because a later release refuses it',
  ])
})

test('a key that no release had is still refused', async () => {
  await expect(loaded('[gateway]\nbind_prot = 4000\n')).rejects.toThrow('bind_prot')
})

test('a command that names a former key learns the present one', () => {
  expect(formerKeyHint(['gateway', 'bind_port'], FORMER)).toContain('is called `gateway.port` since 0.3.0')
  expect(formerKeyHint(['channels_config', 'talk', 'app_token'], FORMER)).toContain('`channels_config.roomchat.app_token`')
  expect(formerKeyHint(['gateway', 'port'], FORMER)).toBeUndefined()
})
