/** The channel and matrix-nio, a client with another encryption library (libolm), in one encrypted room. */
import { memorySecrets } from '@sluice/testkit/memory-store'
import { afterEach, describe, expect, test } from 'vitest'
import { FEDCHAT_BOT, FEDCHAT_PEOPLE, FEDCHAT_ROOM, type FedchatFake, startFedchatFake } from './testing/fake.ts'
import { missingNio, type NioPerson, startNio } from './testing/nio.ts'
import { NEVER, soon, startTestChannel, type TestChannel } from './testing/test-channel.ts'

const [ADA] = FEDCHAT_PEOPLE
const MISSING = missingNio()

describe.skipIf(MISSING !== undefined)(`matrix-nio in an encrypted room${MISSING ? ` (${MISSING})` : ''}`, () => {
  const open: { close(): Promise<unknown> }[] = []
  afterEach(async () => {
    for (const one of open.splice(0).reverse()) await one.close()
  })

  async function arrange(
    secrets = memorySecrets(),
  ): Promise<{ fake: FedchatFake; bot: TestChannel; ada: NioPerson; restart(): Promise<TestChannel> }> {
    // matrix-nio 0.20 knows only the old endpoints of media, to which the channel then falls back.
    const fake = await startFedchatFake({ isEncrypted: true, hasOldMediaOnly: true })
    open.push(fake)
    const ada = await startNio(fake.url, ADA)
    open.push(ada)
    let bot = startTestChannel(fake, {}, { secrets })
    open.push({ close: () => bot.stop() })
    await bot.connected()
    const restart = async () => {
      await bot.stop()
      bot = startTestChannel(fake, {}, { secrets })
      await bot.connected()
      return bot
    }
    return { fake, bot, ada, restart }
  }

  test('text, threads, edits and redactions arrive decrypted, and replies are decrypted there', async () => {
    const { fake, bot, ada, restart } = await arrange()
    const asked = await ada.send(FEDCHAT_ROOM, { msgtype: 'm.text', body: 'is it encrypted?' })
    await soon(() => expect(bot.received).toHaveLength(1))
    expect(bot.received[0]).toMatchObject({ id: asked, sender: ADA, text: 'is it encrypted?', to: { to: FEDCHAT_ROOM, replyTo: asked } })
    const to = bot.received[0]?.to ?? { to: '' }
    const sent = await bot.channel.send(to, { text: 'yes, it is', clientId: 'c-1' }, NEVER)
    await bot.channel.send(to, { text: 'yes, it is', clientId: 'c-1' }, NEVER)
    await soon(() => expect(ada.events.filter(({ sender }) => sender === FEDCHAT_BOT)).toHaveLength(1))
    expect(ada.events.at(-1)).toMatchObject({ kind: 'RoomMessageText', id: sent.id, body: 'yes, it is', encrypted: true })
    expect(JSON.stringify(fake.sent())).not.toContain('yes, it is')

    await ada.send(FEDCHAT_ROOM, {
      msgtype: 'm.text',
      body: '* is it?',
      'm.new_content': { msgtype: 'm.text', body: 'is it?' },
      'm.relates_to': { rel_type: 'm.replace', event_id: asked },
    })
    const thread = { rel_type: 'm.thread', event_id: asked, is_falling_back: true, 'm.in_reply_to': { event_id: asked } }
    const inThread = await ada.send(FEDCHAT_ROOM, { msgtype: 'm.text', body: 'in a thread', 'm.relates_to': thread })
    await ada.redact(FEDCHAT_ROOM, inThread)
    await soon(() => expect(bot.received).toHaveLength(4))
    expect(bot.received.slice(1)).toMatchObject([
      { text: 'is it?', changes: { message: asked, what: 'edited' } },
      { text: 'in a thread', to: { thread: asked } },
      { text: '', changes: { message: inThread, what: 'deleted' } },
    ])
    await bot.channel.update?.(to, sent, { text: 'yes, really', clientId: 'c-1' }, NEVER)
    await soon(() => expect(ada.events.at(-1)?.content).toMatchObject({ 'm.new_content': { body: 'yes, really' } }))
    expect(ada.events.at(-1)?.content).toMatchObject({ 'm.relates_to': { rel_type: 'm.replace', event_id: sent.id } })

    const second = await restart()
    await ada.send(FEDCHAT_ROOM, { msgtype: 'm.text', body: 'still there?' })
    await soon(() => expect(second.received.map(({ text }) => text)).toEqual(['still there?']))
    await second.channel.send({ to: FEDCHAT_ROOM, thread: asked }, { text: 'yes, still', clientId: 'c-2' }, NEVER)
    await soon(() => expect(ada.events.at(-1)).toMatchObject({ body: 'yes, still', encrypted: true }))
  })

  test('files are encrypted both ways', async () => {
    const { fake, bot, ada } = await arrange()
    await ada.sendFile(FEDCHAT_ROOM, 'notes.txt', 'a secret note')
    await soon(() => expect(bot.received).toHaveLength(1))
    const [attachment] = bot.received[0]?.attachments ?? []
    expect(attachment).toMatchObject({ kind: 'file', name: 'notes.txt', mime: 'text/plain' })
    const media = attachment && (await bot.channel.fetchMedia?.(attachment, { bytesMax: 1000, signal: NEVER }))
    expect(Buffer.from(media?.bytes ?? []).toString()).toBe('a secret note')
    const bytes = Buffer.from('an answer in a file')
    await bot.channel.send(
      { to: FEDCHAT_ROOM },
      { text: '', clientId: 'f-1', attachments: [{ kind: 'file', name: 'answer.txt', mime: 'text/plain', source: { bytes } }] },
      NEVER,
    )
    await soon(() =>
      expect(ada.events.at(-1)).toMatchObject({ kind: 'RoomEncryptedFile', body: 'answer.txt', file: 'an answer in a file' }),
    )
    expect([...fake.state.media.values()].map(({ bytes: stored }) => stored.toString()).join()).not.toMatch(/secret note|an answer/)
  })

  test('a person verifies the device of the bot with emoji that the operator confirms', async () => {
    const { fake, bot, ada } = await arrange()
    await ada.send(FEDCHAT_ROOM, { msgtype: 'm.text', body: 'hello' })
    await soon(() => expect(bot.received).toHaveLength(1))
    // The bot accepts verifications from devices that it knows.
    await bot.channel.send({ to: FEDCHAT_ROOM }, { text: 'hi', clientId: 'v-1' }, NEVER)
    await ada.verify(FEDCHAT_BOT, fake.bot.deviceId)
    await soon(() => expect(ada.emoji).toHaveLength(7))
    await soon(async () => expect(await bot.run('fedchat verify')).toContain(ada.emoji?.at(-1)))
    const shown = await bot.run('fedchat verify')
    for (const name of ada.emoji ?? []) expect(shown.toLowerCase()).toContain(name.toLowerCase())
    await ada.confirm()
    await bot.run('fedchat verify', ADA, 'yes')
    await soon(() => expect(ada.isVerified).toBe(true))
  })
})
