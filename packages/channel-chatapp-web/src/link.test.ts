/** Linking with the real library: QR codes and codes to type, against a server with a phone. */
import { afterEach, describe, expect, test } from 'vitest'
import { type Running, type StartOptions, startChannel } from './testing/start-channel.ts'

const never = new AbortController().signal
const running: Running[] = []
afterEach(async () => {
  for (const one of running.splice(0)) await one.close()
})

async function start(options: StartOptions = {}): Promise<Running> {
  const started = await startChannel({ isLinked: false, ...options })
  running.push(started)
  await started.until(() => started.listening.health.state === 'down', 'the request to link')
  return started
}

const shown = async ({ channel, until }: Running) => {
  let status = await channel.link.status()
  await until(async () => {
    status = await channel.link.status()
    return status.state !== 'linking' || status.qr !== undefined || status.code !== undefined
  }, 'a code')
  return status as { readonly qr?: { readonly text: string; readonly rows: readonly string[] }; readonly code?: string }
}

const isLinked = ({ channel, until }: Running): Promise<void> =>
  until(async () => (await channel.link.status()).state === 'linked', 'linked')

/** Builds the channel again, as the daemon does when the feature asks for it. */
async function rebuilt(one: Running): Promise<Running> {
  await one.until(() => one.host.rebuilds.length > 0, 'the request to build the channel again')
  const next = await one.restart()
  running.push({ ...next, close: () => next.listening.stop() })
  await next.until(() => next.listening.health.state === 'ok', 'a connection')
  return next
}

describe('linking', () => {
  test('by a QR code: the channel then receives and sends, also after a restart', async () => {
    const one = await start()
    expect(one.listening.health.detail).toContain('sluice channels link')
    await one.channel.link.start({})
    const { qr } = await shown(one)
    expect(qr?.rows).toHaveLength(qr?.rows[0]?.length ?? 0)
    one.fake.scan(qr?.text ?? '')
    await isLinked(one)
    const next = await rebuilt(one)
    next.fake.say({ text: 'hello' })
    const { to } = await next.inbound()
    await next.channel.send(to, { text: 'hi', clientId: 'c1' }, never)
    expect(one.fake.sent.map(({ text }) => text)).toEqual(['hi'])
  })

  test('by a code that the person types, for the number of the section or of the request', async () => {
    const one = await start({ section: { pair_phone: '+1 555 000 1111' } })
    await one.channel.link.start({})
    const { code } = await shown(one)
    expect(code).toMatch(/^[\dA-Z]{4}-[\dA-Z]{4}$/)
    await one.until(() => one.fake.wantsCode, 'the request for a code')
    one.fake.typeCode(code ?? '')
    await isLinked(one)
    expect(await one.channel.link.status()).toEqual({ state: 'linked', account: '+15550001111' })
  })

  test('a wrong code links nothing', async () => {
    const one = await start()
    await one.channel.link.start({ phone: '+15550001111' })
    await shown(one)
    await one.until(() => one.fake.wantsCode, 'the request for a code')
    one.fake.typeCode('ABCD-1234')
    await one.fake.settled()
    expect((await one.channel.link.status()).state).not.toBe('linked')
  })

  test('an attempt ends when it is replaced or ended, and another one shows another code', async () => {
    const one = await start()
    await one.channel.link.start({})
    const first = await shown(one)
    await one.channel.link.start({})
    const second = await shown(one)
    expect(second.qr?.text).not.toBe(first.qr?.text)
    expect(() => one.fake.scan(first.qr?.text ?? '')).toThrow()
    await one.channel.link.unlink(never)
    expect(await one.channel.link.status()).toMatchObject({ state: 'unlinked' })
  })

  test('an impossible number, and a second device, are refused', async () => {
    const one = await start()
    await expect(one.channel.link.start({ phone: '12' })).rejects.toMatchObject({ code: 'invalid_request' })
    const linked = await startChannel()
    running.push(linked)
    await linked.until(() => linked.listening.health.state === 'ok', 'a connection')
    await expect(linked.channel.link.start({})).rejects.toMatchObject({ code: 'conflict' })
  })

  test('unlinking tells the platform, and deletes the keys', async () => {
    const one = await startChannel()
    running.push(one)
    await one.until(() => one.listening.health.state === 'ok', 'a connection')
    await one.channel.link.unlink(never)
    expect(await one.channel.link.status()).toEqual({ state: 'unlinked' })
    expect(await one.host.secrets.list('', 10)).toEqual([])
    await one.until(() => one.fake.online === 0, 'the end of the connection')
  })

  test('unlinking ends the connection before it deletes the keys, also when the phone does not learn of it', async () => {
    const one = await startChannel()
    running.push(one)
    await one.until(() => one.listening.health.state === 'ok', 'a connection')
    const { secrets } = one.host
    const write = secrets.setAll
    const wasOnline: boolean[] = []
    secrets.setAll = async (changes) => {
      const typing = Promise.resolve(one.channel.typing?.({ to: '15550002222@s.whatsapp.net' }, never))
      wasOnline.push(
        await typing.then(
          () => true,
          () => false,
        ),
      )
      return write(changes)
    }
    await one.channel.link.unlink(AbortSignal.abort())
    expect(wasOnline.at(-1)).toBe(false)
    expect(await one.channel.link.status()).toEqual({ state: 'unlinked' })
    expect(await secrets.list('', 10)).toEqual([])
  })

  test('a server with a certificate of another root is refused', async () => {
    const one = await start({ section: { web_root_key: 'ab'.repeat(32) } })
    await one.channel.link.start({})
    await one.until(async () => (await one.channel.link.status()).state === 'unlinked', 'a refusal')
    expect((await one.channel.link.status()) as object).toHaveProperty('reason')
  })
})
