/** The channel with the real library, against a server that speaks the protocol. */

import { createCipheriv, createHash, createHmac } from 'node:crypto'
import type { Attachment, Inbound } from '@sluice/sdk'
import { getMediaKeys, proto } from '@whiskeysockets/baileys'
import { afterEach, describe, expect, test } from 'vitest'
import { BOT_LID, BOT_NUMBER, GROUP } from './testing/index.ts'
import { type Running, type StartOptions, startChannel } from './testing/start-channel.ts'

const ADA = '+15550002222'
const BOB_NUMBER = '15550003333'
const ADA_JID = '15550002222@s.whatsapp.net'
const never = new AbortController().signal

const running: Running[] = []
afterEach(async () => {
  for (const one of running.splice(0)) await one.close()
})

async function start(options: StartOptions = {}): Promise<Running> {
  const started = await startChannel(options)
  running.push(started)
  await started.until(() => started.listening.health.state === 'ok', 'a connection')
  return started
}

const mentioning = (text: string, ...jids: string[]): proto.IMessage => ({
  extendedTextMessage: { text, contextInfo: { mentionedJid: jids } },
})

/** Resolves once a later message has come, so that an earlier one would have come, too. */
async function afterAll({ fake, inbound }: Running, more: object = {}): Promise<void> {
  const id = fake.say({ text: 'the last one', ...more })
  await inbound((one) => one.id.endsWith(id))
}

describe('incoming', () => {
  test('a number, a hidden id with its number, and a hidden id alone are three ways to name a sender; only the last matches no number', async () => {
    const { fake, inbound } = await start()
    const ids = (['number', 'lid', 'hidden'] as const).map((address, index) =>
      fake.say({ text: 'hi', from: `1555000777${index}`, address }),
    )
    const [first, second, third] = await Promise.all(ids.map((id) => inbound((one) => one.id.endsWith(id))))
    expect([first?.sender, second?.sender]).toEqual(['+15550007770', '+15550007771'])
    expect(third?.sender).toMatch(/^\d+@lid$/)
    expect([second?.to.to, third?.to.to]).toEqual(['15550007771@s.whatsapp.net', third?.sender])
  })

  test('a hidden id has the number that the platform told before', async () => {
    const { fake, inbound } = await start()
    const first = fake.say({ text: 'one', address: 'lid' })
    await inbound((one) => one.id.endsWith(first))
    const second = fake.say({ text: 'two', address: 'hidden' })
    expect((await inbound((one) => one.id.endsWith(second))).sender).toBe(ADA)
  })

  test('a message to be viewed once, which the platform gives to phones only, arrives as a line', async () => {
    const { fake, inbound } = await start()
    const id = fake.say({ isViewOnce: true })
    const { sender, text, things } = await inbound((one) => one.id.endsWith(id))
    expect({ sender, text, things }).toEqual({
      sender: ADA,
      text: '',
      things: [{ kind: 'unknown', text: 'one that WhatsApp shows only on the phone, such as a picture to be viewed once' }],
    })
  })

  test('messages that come at the same time keep their order', async () => {
    const { fake, got, until } = await start()
    const texts = Array.from({ length: 12 }, (_, index) => `${index}`)
    for (const text of texts) fake.say({ text, from: `1555000888${Number(text) % 3}` })
    await until(() => got.length === texts.length, 'all messages')
    for (const sender of ['+15550008880', '+15550008881', '+15550008882']) {
      const heard = got.filter((one) => one.sender === sender).map(({ text }) => Number(text))
      expect(heard).toEqual(heard.toSorted((a, b) => a - b))
    }
  })

  test('an edit and a deletion change a message, and only an administrator changes messages of others', async () => {
    const { fake, inbound, got, ...rest } = await start()
    const id = fake.say({ text: 'first', group: GROUP })
    await inbound()
    const edit = fake.edit(id, { text: 'second', group: GROUP })
    expect(await inbound((one) => one.id.endsWith(edit))).toMatchObject({
      sender: ADA,
      text: 'second',
      changes: { message: `${ADA}/${id}`, what: 'edited' },
    })
    const target = { key: { id, participant: ADA_JID }, type: proto.Message.ProtocolMessage.Type.REVOKE }
    const forged = fake.say({ from: BOB_NUMBER, group: GROUP, message: { protocolMessage: target }, attrs: { edit: '7' } })
    expect((await inbound((one) => one.id.endsWith(forged))).changes).toEqual({ message: `+${BOB_NUMBER}/${id}`, what: 'deleted' })
    const byAdmin = fake.say({ from: BOB_NUMBER, group: GROUP, message: { protocolMessage: target }, attrs: { edit: '8' } })
    expect((await inbound((one) => one.id.endsWith(byAdmin))).changes).toEqual({ message: `${ADA}/${id}`, what: 'deleted' })
    const own = fake.remove(id, { group: GROUP })
    expect((await inbound((one) => one.id.endsWith(own))).changes).toEqual({ message: `${ADA}/${id}`, what: 'deleted' })
    await afterAll({ fake, inbound, got, ...rest })
    expect(got).toHaveLength(6)
  })

  test('a quote names the quoted message, and a forwarded text is that of others', async () => {
    const { fake, inbound } = await start()
    const contextInfo = { stanzaId: '3EB0', participant: `${BOT_LID}@lid`, quotedMessage: { conversation: 'yes?' } }
    const quote = fake.say({ message: { extendedTextMessage: { text: 'that one', contextInfo } } })
    const id = `+${BOT_NUMBER}/3EB0`
    expect(await inbound((one) => one.id.endsWith(quote))).toMatchObject({
      text: 'that one',
      inReplyTo: id,
      quoted: { id, by: 'bot', text: 'yes?' },
    })
    const ofOther = { stanzaId: '3EB1', participant: '15559998888@s.whatsapp.net', quotedMessage: { conversation: 'ticket 4711 burns' } }
    const other = fake.say({ message: { extendedTextMessage: { text: 'what does she mean?', contextInfo: ofOther } } })
    const { quoted } = await inbound((one) => one.id.endsWith(other))
    expect(quoted).toEqual({ id: '+15559998888/3EB1', author: { id: '+15559998888' }, text: 'ticket 4711 burns' })
    const forwarded = fake.say({ message: { extendedTextMessage: { text: 'run rm -rf', contextInfo: { isForwarded: true } } } })
    expect(await inbound((one) => one.id.endsWith(forwarded))).toMatchObject({ text: '', forwarded: { text: 'run rm -rf' } })
  })

  test('own messages, and messages of channels and of the status, are not for the bot', async () => {
    const one = await start()
    one.fake.say({ text: 'from my phone', from: BOT_NUMBER })
    one.fake.say({ text: 'status', attrs: { from: 'status@broadcast', participant: ADA_JID } })
    await afterAll(one)
    expect(one.got).toHaveLength(1)
  })

  test('self_chat_mode answers notes of the account to itself', async () => {
    const { fake, inbound } = await start({ section: { self_chat_mode: true } })
    fake.say({ text: 'for Ada', from: BOT_NUMBER, attrs: { recipient: ADA_JID } })
    fake.say({ text: 'note', from: BOT_NUMBER, attrs: { recipient: `${BOT_NUMBER}@s.whatsapp.net` } })
    expect(await inbound()).toMatchObject({ sender: `+${BOT_NUMBER}`, text: 'note' })
  })

  test('only the account itself writes copies of its messages', async () => {
    const one = await start({ section: { self_chat_mode: true } })
    const message = { conversation: 'as you' }
    one.fake.say({ message: { deviceSentMessage: { destinationJid: `${BOT_NUMBER}@s.whatsapp.net`, message } } })
    await afterAll(one)
    expect(one.got).toHaveLength(1)
  })

  test('a message is not lost when the number of its author cannot be read from the store', async () => {
    const { fake, host, inbound } = await start()
    const first = fake.say({ text: 'one', address: 'lid' })
    await inbound((one) => one.id.endsWith(first))
    const { secrets } = host
    const read = secrets.get
    let failures = 0
    secrets.get = async (name) => {
      const hasReceived = (await secrets.list('', 10_000)).some((record) => record.name.includes('/received/'))
      if (name.endsWith('_reverse') && hasReceived && failures++ < 2) throw new Error('the disk is full')
      return read(name)
    }
    const second = fake.say({ text: 'two', address: 'hidden' })
    expect((await inbound((one) => one.id.endsWith(second))).sender).toBe(ADA)
    expect(failures).toBeGreaterThan(2)
  })

  test('messages that wait at the server without a listener arrive once', async () => {
    const one = await start()
    await one.listening.stop()
    const ids = [one.fake.say({ text: 'a' }), one.fake.say({ text: 'b', group: GROUP }), one.fake.say({ text: 'c', from: BOB_NUMBER })]
    await one.fake.settled()
    const next = await one.restart()
    running.push({ ...next, close: () => next.listening.stop() })
    await next.until(() => next.got.length === 3, 'three messages')
    await afterAll(next)
    expect(
      next.got
        .map(({ id }) => id.split('/')[1])
        .slice(0, 3)
        .toSorted(),
    ).toEqual(ids.toSorted())
    await next.until(() => one.fake.waiting === 0, 'all messages confirmed')
  })
})

describe('groups', () => {
  const groupText = (text: string, from = '15550002222') => ({ text, from, group: GROUP })

  test('with mention_only, a message must mention the bot by number or hidden id, quote it, or contain a name', async () => {
    const one = await start({ section: { mention_only: true, mention_names: ['sluice'] } })
    const { fake, got } = one
    fake.say(groupText('not for you'))
    fake.say({ group: GROUP, message: mentioning(`@${BOT_NUMBER} hello`, `${BOT_NUMBER}@s.whatsapp.net`) })
    fake.say({ group: GROUP, message: mentioning(`so @${BOT_LID}, hello`, `${BOT_LID}@lid`) })
    const contextInfo = { stanzaId: 'X', participant: `${BOT_NUMBER}@s.whatsapp.net` }
    fake.say({ group: GROUP, message: { extendedTextMessage: { text: 'quoting', contextInfo } } })
    fake.say(groupText('Hey Sluice!'))
    fake.say(groupText('sluices are open'))
    await afterAll(one)
    const { overheard = [], answered = [] } = Object.groupBy(got, (one) => (one.overheardOnly ? 'overheard' : 'answered'))
    expect(answered.map(({ text }) => text)).toEqual(['hello', `so @${BOT_LID}, hello`, 'quoting', 'Hey Sluice!', 'the last one'])
    expect(overheard.map(({ text }) => text)).toEqual(['not for you', 'sluices are open'])
  })

  test('group_policy and allowed_groups leave groups out, and dm_policy direct messages', async () => {
    const ignoring = await start({ section: { group_policy: 'ignore' } })
    ignoring.fake.say(groupText('hi'))
    await afterAll(ignoring)
    expect(ignoring.got).toHaveLength(1)
    const chosen = await start({ section: { dm_policy: 'ignore', allowed_groups: [GROUP] } })
    chosen.fake.say({ text: 'direct' })
    chosen.fake.say({ text: 'other group', group: '120363000000000009@g.us' })
    await afterAll(chosen, { group: GROUP })
    expect(chosen.got.map(({ text }) => text)).toEqual(['the last one'])
  })

  test('a reply goes to the group, quotes its message, and is readable by its members', async () => {
    const { fake, channel, inbound } = await start()
    const id = fake.say(groupText('question'))
    const { to } = await inbound()
    await channel.send(to, { text: 'answer', clientId: 'g1' }, never)
    const [sent] = fake.sent
    expect(sent).toMatchObject({ to: GROUP, text: 'answer' })
    expect(sent?.message.extendedTextMessage?.contextInfo).toMatchObject({
      stanzaId: id,
      participant: ADA_JID,
      quotedMessage: { conversation: 'question' },
    })
  })
})

describe('outgoing', () => {
  const to = { to: ADA_JID }

  test('an attempt that is repeated is the same message', async () => {
    const { fake, channel } = await start()
    const send = () => channel.send(to, { text: 'once', clientId: 'c1' }, never)
    expect((await send()).id).toBe((await send()).id)
    expect(fake.sent).toHaveLength(1)
  })

  test('a lost acknowledgement is unavailable, and the next attempt completes it', async () => {
    const { fake, channel, until, listening } = await start()
    fake.loseAck()
    await expect(channel.send(to, { text: 'once', clientId: 'c1' }, never)).rejects.toMatchObject({ code: 'unavailable' })
    await until(() => fake.online === 0, 'the end')
    await until(() => listening.health.state === 'ok' && fake.online === 1, 'another connection')
    await channel.send(to, { text: 'once', clientId: 'c1' }, never)
    expect(fake.sent.map(({ text }) => text)).toEqual(['once'])
  })

  test.each([
    ['463', 'forbidden'],
    ['479', 'unavailable'],
    ['429', 'rate_limited'],
    ['404', 'invalid_request'],
  ])('a refusal with %s is %s', async (error, code) => {
    const { fake, channel } = await start()
    fake.refuseMessages(error)
    await expect(channel.send(to, { text: 'x', clientId: 'c1' }, never)).rejects.toMatchObject({ code })
  })

  test('a message that a phone cannot read is sent to it again, also after a restart', async () => {
    const one = await start()
    await one.channel.send(to, { text: 'first', clientId: 'r1' }, never)
    const next = await one.restart()
    running.push({ ...next, close: () => next.listening.stop() })
    await next.until(() => next.listening.health.state === 'ok', 'a connection')
    next.fake.loseSession('15550002222')
    await next.channel.send(to, { text: 'second', clientId: 'r2' }, never)
    await next.until(() => next.fake.sent.length === 2, 'the second message')
    expect(next.fake.sent.map(({ text }) => text)).toEqual(['first', 'second'])
  })

  test('an edit replaces the text of a message', async () => {
    const { fake, channel } = await start()
    const sent = await channel.send(to, { text: 'draft', clientId: 'c1' }, never)
    await channel.update?.(to, sent, { text: 'final', clientId: 'c1' }, never)
    const edit = fake.sent[1]?.message.protocolMessage
    expect([edit?.key?.id, edit?.editedMessage?.extendedTextMessage?.text]).toEqual([sent.id.split('/')[1], 'final'])
  })

  test('a reaction to a question presses its button, also after a restart; other reactions are nothing', async () => {
    const one = await start()
    const buttons = [
      { label: 'Approve', value: 'approve:1', tone: 'good' },
      { label: 'Reject', value: 'reject:1', tone: 'bad' },
    ] as const
    const sent = await one.channel.send(to, { text: 'May I?', buttons, clientId: 'q1' }, never)
    const next = await one.restart()
    running.push({ ...next, close: () => next.listening.stop() })
    await next.until(() => next.listening.health.state === 'ok', 'a connection')
    const id = sent.id.split('/')[1] ?? ''
    next.fake.react(id, '🎉')
    next.fake.react(id, '👎🏽')
    const pressed = await next.inbound()
    expect([pressed.sender, pressed.pressed]).toEqual([ADA, { message: sent.id, value: 'reject:1' }])
    await afterAll(next)
    expect(next.got).toHaveLength(2)
  })

  test('typing and read receipts are shown, receipts only in business mode', async () => {
    const { fake, channel, inbound, until } = await start()
    const id = fake.say({ text: 'hi' })
    const message = await inbound()
    await channel.typing?.(message.to, never)
    await channel.acknowledge?.(message, never)
    await until(() => fake.typing.includes(ADA_JID) && fake.read.includes(id), 'typing and a receipt')
    expect((await start({ section: { mode: 'personal' } })).channel.acknowledge).toBeUndefined()
  })

  test('text that looks like a mention of all mentions no one', async () => {
    const { fake, channel } = await start()
    await channel.send({ to: GROUP }, { text: '@all @everyone @15550002222', clientId: 'm1' }, never)
    const { contextInfo } = fake.sent[0]?.message.extendedTextMessage ?? {}
    expect([contextInfo?.mentionedJid ?? [], contextInfo?.nonJidMentions ?? 0, contextInfo?.groupMentions ?? []]).toEqual([[], 0, []])
  })
})

/** A file as a phone encrypts and uploads it, with the key derivation of the library. */
async function uploadAsPhone({ fake }: Running, kind: 'image' | 'audio' | 'document', plain: Buffer) {
  const mediaKey = Buffer.alloc(32, 7)
  const { iv, cipherKey, macKey } = await getMediaKeys(mediaKey, kind)
  if (!macKey) throw new Error('no key')
  const cipher = createCipheriv('aes-256-cbc', cipherKey, iv)
  const encrypted = Buffer.concat([cipher.update(plain), cipher.final()])
  const bytes = Buffer.concat([encrypted, createHmac('sha256', macKey).update(iv).update(encrypted).digest().subarray(0, 10)])
  const path = `/mms/${kind}/from-a-phone`
  fake.files.set(path, bytes)
  return { directPath: path, mediaKey, fileEncSha256: createHash('sha256').update(bytes).digest(), fileLength: plain.length }
}

const onlyFile = ({ attachments = [] }: Inbound): Attachment => attachments[0] as Attachment

describe('files', () => {
  test('a picture arrives as its sender sent it, and a file that was changed on the way does not', async () => {
    const one = await start()
    const { fake, channel, inbound } = one
    const picture = await uploadAsPhone(one, 'image', Buffer.from('a picture'))
    const id = fake.say({ message: { imageMessage: { ...picture, mimetype: 'image/png', caption: 'look' } } })
    const message = await inbound((got) => got.id.endsWith(id))
    expect([message.text, onlyFile(message)]).toMatchObject(['look', { kind: 'image', name: 'image.png', mime: 'image/png' }])
    const fetched = await channel.fetchMedia?.(onlyFile(message), { bytesMax: 100, signal: never })
    expect(Buffer.from(fetched?.bytes ?? []).toString()).toBe('a picture')
    await expect(channel.fetchMedia?.(onlyFile(message), { bytesMax: 5, signal: never })).rejects.toMatchObject({ code: 'too_large' })
    fake.files.set(picture.directPath, Buffer.from('something else, which is long enough'))
    await expect(channel.fetchMedia?.(onlyFile(message), { bytesMax: 100, signal: never })).rejects.toMatchObject({
      code: 'invalid_request',
    })
  })

  test('files of a reply are uploaded encrypted and sent with the text as a caption', async () => {
    const { fake, channel } = await start()
    const bytes = Buffer.from('%PDF-1.7')
    const attachments = [{ kind: 'file', name: 'report.pdf', mime: 'application/pdf', source: { bytes } }] as const
    await channel.send({ to: ADA_JID }, { text: 'the report', attachments, clientId: 'f1' }, never)
    const document = fake.sent[0]?.message.documentMessage
    expect(document).toMatchObject({ fileName: 'report.pdf', caption: 'the report', mimetype: 'application/pdf' })
    const stored = Buffer.from(fake.files.get(document?.directPath ?? '') ?? [])
    expect(stored.includes(bytes)).toBe(false)
    expect(createHash('sha256').update(stored).digest()).toEqual(Buffer.from(document?.fileEncSha256 ?? []))
  })

  test('a voice message is answered by text and, where texts can be spoken, by one voice message', async () => {
    const spoken: string[] = []
    const ogg = Buffer.alloc(60)
    ogg.write('OggS', 0)
    ogg.writeBigUInt64LE(96_000n, 6)
    const speak = async (text: string) => {
      spoken.push(text)
      return { bytes: ogg, format: 'ogg', mime: 'audio/ogg' } as const
    }
    const one = await start({ services: { speak } })
    const voice = await uploadAsPhone(one, 'audio', Buffer.from('opus'))
    one.fake.say({ message: { audioMessage: { ...voice, mimetype: 'audio/ogg; codecs=opus', ptt: true } } })
    const message = await one.inbound()
    expect(onlyFile(message)).toMatchObject({ kind: 'audio', name: 'voice.ogg', mime: 'audio/ogg' })
    await one.channel.send(message.to, { text: 'part one', clientId: 'v1' }, never)
    await one.channel.send(message.to, { text: 'part two', clientId: 'v2' }, never)
    await one.until(() => one.fake.sent.length === 3, 'a voice message')
    const audio = one.fake.sent.find((sent) => sent.message.audioMessage)?.message.audioMessage
    expect(audio).toMatchObject({ ptt: true, seconds: 2, mimetype: 'audio/ogg; codecs=opus' })
    expect(spoken).toEqual(['part one'])
    const text = one.fake.say({ text: 'a text' })
    await one.channel.send((await one.inbound((got) => got.id.endsWith(text))).to, { text: 'no voice', clientId: 'v3' }, never)
    expect(spoken).toHaveLength(1)
  })
})

describe('endings', () => {
  test('a removed device is not tried again, its keys are gone, and the operator is asked to link again', async () => {
    const { fake, host, until, listening } = await start()
    fake.unlink()
    await until(() => listening.health.state === 'down', 'down')
    expect(listening.health.detail).toContain('link it again')
    expect(await host.secrets.list('', 10)).toEqual([])
    await until(() => fake.online === 0, 'the end of the connection')
  })

  test('a restart that the server asks for comes at once, and nothing is lost', async () => {
    const one = await start()
    one.fake.endWith(515)
    await one.until(() => one.fake.logins === 2, 'another login')
    await afterAll(one)
    expect(one.host.logs.filter(({ level }) => level === 'error')).toEqual([])
  })

  test.each([
    [440, 'Another program'],
    [403, 'blocked'],
    [405, 'web_version'],
  ])('a login that is refused with %i is left to the operator', async (code, words) => {
    const { fake, until, listening } = await start()
    fake.refuseLogins(code, 100)
    fake.cut()
    await until(() => listening.health.state === 'down', 'down')
    expect(listening.health.detail).toContain(words)
    const { logins } = fake
    expect(logins).toBe(1)
  })

  test('a device that was unlinked does not come back from the folder of the other program', async () => {
    const one = await start()
    await one.channel.link.unlink(never)
    await one.until(() => one.listening.health.state === 'down', 'down')
    const next = await one.restart()
    running.push({ ...next, close: () => next.listening.stop() })
    await next.until(() => next.listening.health.state === 'down', 'down')
    expect(await next.channel.link.status()).toEqual({ state: 'unlinked' })
  })

  test('no key of the device is in the log, and nothing of the library is printed', async () => {
    const printed: string[] = []
    const write = process.stdout.write.bind(process.stdout)
    process.stdout.write = ((chunk: string) => printed.push(String(chunk)) > 0) as typeof process.stdout.write
    try {
      const one = await start()
      await afterAll(one)
      await one.channel.send({ to: ADA_JID }, { text: 'x', clientId: 'p1' }, never)
      one.fake.repeat(one.got[0]?.id.split('/')[1] ?? '')
      await one.fake.settled()
      await afterAll(one)
      expect(JSON.stringify(one.host.logs)).not.toMatch(/privKey|rootKey|chainKey|ephemeralKeyPair/)
    } finally {
      process.stdout.write = write
    }
    expect(printed.join('')).not.toMatch(/session|privKey|SessionEntry/i)
  })
})
