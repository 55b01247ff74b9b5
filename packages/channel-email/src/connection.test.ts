/** Reading the mailbox of the fake: identities, threads, positions, and what goes wrong. */
import { AppError } from '@sluice/sdk'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { RECENT_MAX } from './progress.ts'
import { SENDERS_MAX, SenderLimit } from './sender-limit.ts'
import { type Bench, startBench } from './testing/bench.ts'
import { AUTHSERV_ID, CAPABILITIES, EMAIL_PASSWORD } from './testing/fake.ts'

const soon = (check: () => void) => vi.waitFor(check, { timeout: 20_000, interval: 10 })
const NEVER = new AbortController().signal

let bench: Bench
beforeEach(async () => {
  bench = await startBench()
})
afterEach(() => bench.close())

const connected = async (changes?: object, deliver?: Parameters<Bench['listen']>[1]) => {
  const bot = bench.listen(changes, deliver)
  await soon(() => expect(bot.listening.health.state).toBe('ok'))
  await soon(() => expect(bench.fake.selected).toBeGreaterThan(0))
  return bot
}

describe('identities', () => {
  test('the allowlist covers verified senders only, and the log says why', async () => {
    const { channel, received, logs } = await connected({ allowed_senders: ['ada@example.com', 'example.org'] })
    bench.fake.write({ from: 'ada@example.com', isVerified: false, text: 'forged', headers: ['In-Reply-To: <question@example.net>'] })
    bench.fake.write({ from: 'Ada <Ada@Example.com>', text: 'real' })
    await soon(() => expect(received).toHaveLength(2))
    const [forged, real] = received
    const isCovered = (sender = ''): boolean =>
      channel.allow.some((entry) => channel.normalise?.(entry) === sender || channel.matches?.(entry, sender))
    expect(forged).toMatchObject({ sender: 'unverified:ada@example.com', unverified: true })
    // It must not answer a question that was put to the verified sender.
    expect(forged).not.toHaveProperty('inReplyTo')
    expect(real).toMatchObject({ sender: 'ada@example.com' })
    expect([isCovered(forged?.sender), isCovered(real?.sender)]).toEqual([false, true])
    expect([isCovered('eve@example.org'), isCovered('unverified:eve@example.org')]).toEqual([true, false])
    expect(logs).toContainEqual(
      expect.objectContaining({
        message: expect.stringContaining('unverified'),
        fields: expect.objectContaining({ reason: 'its domain did not pass DMARC' }),
      }),
    )
  })

  test.each([
    ['two addresses', 'ada@example.com, eve@evil.example'],
    ['a group', 'undisclosed:;'],
    ['nothing', ''],
    ['an address in the name', '"ada@example.com" <eve@evil.example'],
  ])('a From with %s is ignored', async (_, from) => {
    const { received, logs } = await connected()
    bench.fake.write({ from, text: 'x' })
    bench.fake.write({ text: 'next' })
    await soon(() => expect(received.map(({ typed }) => typed)).toEqual(['next']))
    expect(logs).toContainEqual(expect.objectContaining({ message: 'mail ignored' }))
  })

  test('a second From header is ignored', async () => {
    const { received } = await connected()
    bench.fake.write({ headers: ['From: eve@evil.example'], text: 'x' })
    bench.fake.write({ text: 'next' })
    await soon(() => expect(received.map(({ typed }) => typed)).toEqual(['next']))
  })

  test('Reply-To counts only if the mail is verified and the allowlist names it', async () => {
    const { received } = await connected({ allowed_senders: ['*', 'example.com'] })
    bench.fake.write({ headers: ['Reply-To: ada.home@example.com'], text: 'own' })
    bench.fake.write({ headers: ['Reply-To: eve@evil.example'], text: 'foreign' })
    bench.fake.write({ headers: ['Reply-To: ada.home@example.com'], text: 'forged', isVerified: false })
    await soon(() => expect(received).toHaveLength(3))
    expect(received.map(({ to }) => to.to)).toEqual(['ada.home@example.com', 'ada@example.com', 'ada@example.com'])
  })
})

describe('loops', () => {
  test.each([
    ['Auto-Submitted: auto-replied'],
    ['Auto-Submitted: auto-generated; x=y'],
    ['Precedence: bulk'],
    ['Precedence: list'],
    ['List-Id: <l.example.com>'],
    ['X-Auto-Response-Suppress: OOF, AutoReply'],
    ['X-Autoreply: yes'],
    ['Return-Path: <>'],
    ['Content-Type: multipart/report; report-type=delivery-status'],
    ['From: bot@example.net'],
  ])('a mail with %j is ignored', async (header) => {
    const { received } = await connected()
    const [name = ''] = header.split(':')
    const lines = [
      `Authentication-Results: ${AUTHSERV_ID}; dmarc=pass header.from=example.com`,
      'From: ada@example.com',
      'Subject: x',
      'Content-Type: text/plain',
    ].filter((line) => !line.startsWith(`${name}:`))
    bench.fake.deliver(`${[...lines, header].join('\r\n')}\r\n\r\nautomatic\r\n`)
    bench.fake.write({ text: 'by a person', headers: ['Auto-Submitted: no', 'Precedence: normal'] })
    await soon(() => expect(received.map(({ typed }) => typed)).toEqual(['by a person']))
  })

  test('of one sender, only max_mails_per_hour are read', async () => {
    const { received, logs } = await connected({ max_mails_per_hour: 3 })
    for (let number = 1; number <= 6; number++) bench.fake.write({ text: `ada ${number}` })
    bench.fake.write({ from: 'bob@example.com', text: 'bob' })
    await soon(() => expect(received.at(-1)?.typed).toBe('bob'))
    expect(received.map(({ typed }) => typed)).toEqual(['ada 1', 'ada 2', 'ada 3', 'bob'])
    expect(logs.filter(({ message }) => message.includes('max_mails_per_hour'))).toHaveLength(1)
  })

  test('the limit counts the mails of before a restart', async () => {
    const first = await connected({ max_mails_per_hour: 2 })
    for (const text of ['one', 'two']) bench.fake.write({ text })
    await soon(() => expect(first.received).toHaveLength(2))
    await first.listening.stop()
    const second = await connected({ max_mails_per_hour: 2 })
    bench.fake.write({ text: 'three' })
    bench.fake.write({ from: 'bob@example.com', text: 'bob' })
    await soon(() => expect(second.received.at(-1)?.typed).toBe('bob'))
    expect(second.received.map(({ typed }) => typed)).toEqual(['bob'])
  })

  test('the limit ends after an hour, and remembers a bounded number of senders', () => {
    const limit = new SenderLimit(1)
    expect([limit.count('a', 0), limit.count('a', 1), limit.count('a', 2), limit.count('a', 3_600_001)]).toEqual([
      'within',
      'first',
      'beyond',
      'within',
    ])
    for (let number = 0; number < SENDERS_MAX; number++) limit.count(`s${number}`, 3_600_002)
    expect(limit.count('a', 3_600_003)).toBe('within')
  })
})

describe('texts', () => {
  test('separates what was typed from the quote, the signature and the subject', async () => {
    const { received } = await connected()
    const text = '/stop\n\n-- \nAda\n\nOn Tue, 3 Jun 2025 at 10:00, Bot <bot@example.net> wrote:\n> What shall I do?'
    bench.fake.write({ subject: 'Re: x', text })
    bench.fake.write({ subject: '/status', text: '' })
    bench.fake.write({ subject: 'yes, deploy it', text: '> Deploy?', headers: ['In-Reply-To: <q@example.net>'] })
    await soon(() => expect(received).toHaveLength(3))
    expect(received[0]).toMatchObject({ text: `Subject: Re: x\n\n${text}`, typed: '/stop', quotedFrom: expect.any(Number) })
    expect(received[0]?.text.slice(received[0].ownBelow?.[0]?.to)).toMatch(/^On Tue/)
    expect(received[1]).toMatchObject({ text: 'Subject: /status', typed: '/status' })
    expect(received[2]).toMatchObject({ typed: '', inReplyTo: '<q@example.net>' })
  })

  test.each([
    ['text/plain; charset=utf-8; format=flowed', 'yes', ['yes']],
    ['text/plain; charset=utf-8', '', []],
    ['text/plain; charset=utf-8; format=flowed; delsp=yes', '', []],
  ])('takes words below a quote of %s for words of the sender: "%s"', async (type, typed, own) => {
    const { received } = await connected()
    const head = ['From: ada@example.com', 'Subject: Re: x', 'In-Reply-To: <q@example.net>', 'Message-ID: <below@example.com>']
    const body = ['On 29/11/2026 01:52, Bot wrote:', '> Deploy?', '', 'yes']
    bench.fake.deliver([...head, 'MIME-Version: 1.0', `Content-Type: ${type}`, '', ...body].join('\r\n'))
    await soon(() => expect(received).toHaveLength(1))
    const [{ text, ownBelow = [], typed: found } = { text: '', typed: undefined }] = received
    expect(ownBelow.map(({ from, to }) => text.slice(from, to))).toEqual(own)
    expect(found).toBe(typed)
  })

  test('a mail without a Message-ID has the same id whenever it is read', async () => {
    const raw = `Authentication-Results: ${AUTHSERV_ID}; dmarc=pass header.from=example.com\r\nFrom: ada@example.com\r\nSubject: x\r\n\r\nhi\r\n`
    const { received } = await connected()
    bench.fake.deliver(raw)
    bench.fake.deliver(raw)
    await soon(() => expect(received).toHaveLength(2))
    expect(received[0]?.id).toMatch(/^<[\da-f]{32}@header\.invalid>$/)
    expect(received[1]?.id).toBe(received[0]?.id)
    expect(received[0]?.to).not.toHaveProperty('replyTo')
  })

  test('a header that is too long is ignored', async () => {
    const { received } = await connected()
    bench.fake.write({ headers: Array.from({ length: 300 }, (_, at) => `X-${at}: ${'x'.repeat(900)}`), text: 'x' })
    bench.fake.write({ text: 'next' })
    await soon(() => expect(received.map(({ typed }) => typed)).toEqual(['next']))
  })
})

describe('the position', () => {
  test('begins at the end of the folder, and goes on after a restart', async () => {
    bench.fake.write({ text: 'old' })
    const first = await connected()
    bench.fake.write({ text: 'one' })
    await soon(() => expect(first.received.map(({ typed }) => typed)).toEqual(['one']))
    await first.listening.stop()
    bench.fake.write({ text: 'two' })
    bench.fake.write({ text: 'three' })
    const second = await connected()
    await soon(() => expect(second.received.map(({ typed }) => typed)).toEqual(['two', 'three']))
    expect(bench.fake.imap.commands.filter((command) => /STORE|SELECT|COPY|EXPUNGE|BODY\[/.test(command))).toEqual([])
  })

  test('stays before a mail that is not durable', async () => {
    let isFull = true
    const first = bench.listen({}, async ({ typed }) => {
      if (isFull && typed === 'two') throw new AppError('unavailable', 'the disk is full')
    })
    await soon(() => expect(first.listening.health.state).toBe('ok'))
    for (const text of ['one', 'two', 'three']) bench.fake.write({ text })
    await soon(() => expect(first.logs).toContainEqual(expect.objectContaining({ message: expect.stringContaining('not stored') })))
    await first.listening.stop()
    isFull = false
    const second = await connected()
    await soon(() => expect(second.received.map(({ typed }) => typed)).toEqual(expect.arrayContaining(['two', 'three'])))
  })

  test('is found again when the server changes the UIDs', async () => {
    const first = await connected()
    for (const text of ['one', 'two']) bench.fake.write({ text })
    await soon(() => expect(first.received).toHaveLength(2))
    await first.listening.stop()
    bench.fake.write({ text: 'three' })
    bench.fake.renumber()
    const second = await connected()
    await soon(() => expect(second.received.map(({ typed }) => typed)).toEqual(['three']))
    bench.fake.write({ text: 'four' })
    await soon(() => expect(second.received.map(({ typed }) => typed)).toEqual(['three', 'four']))
  })

  test('when UIDs and times of all mails change, old mails are not read again', async () => {
    const dayMs = 86_400_000
    const first = await connected()
    for (let number = 0; number < 5; number++) bench.fake.write({ text: `old ${number}`, atMs: Date.now() - 3 * dayMs })
    await soon(() => expect(first.received).toHaveLength(5))
    await first.listening.stop()
    // A restored mailbox, of whose mails the channel has forgotten the ids.
    const [{ key, value }] = (await bench.host.keyValue.list('mailbox/', 1)) as [{ key: string; value: object }]
    await bench.host.keyValue.set(key, { ...value, recent: [] })
    bench.fake.imap.mails = bench.fake.imap.mails.map((mail) => ({ ...mail, atMs: Date.now() }))
    bench.fake.renumber()
    bench.fake.write({ text: 'new' })
    const second = await connected()
    await soon(() => expect(second.received.map(({ typed }) => typed)).toEqual(['new']))
  })

  test('remembers a bounded number of mails', async () => {
    const { Progress } = await import('./progress.ts')
    const { settingsOf } = await import('./settings.ts')
    const { emailSection } = await import('./config.ts')
    const { sectionOf } = await import('./testing/section.ts')
    const v = await import('valibot')
    const progress = new Progress(bench.host.keyValue, settingsOf(v.parse(emailSection.schema, sectionOf(bench.fake))))
    for (let number = 0; number <= RECENT_MAX; number++) progress.remember(`id ${number}`)
    await progress.save({ uidValidity: '1', uid: 1, atMs: 0, setUpAtMs: 0 })
    expect(progress.cursor?.recent).toHaveLength(RECENT_MAX)
    expect([progress.isKnown('id 0'), progress.isKnown('id 1')]).toEqual([false, true])
  })
})

describe('faults', () => {
  test.each([1, 40, 200, 600])('a connection that breaks %i bytes into a FETCH loses and doubles nothing', async (bytes) => {
    const { received } = await connected()
    bench.fake.write({ text: 'before' })
    await soon(() => expect(received).toHaveLength(1))
    bench.fake.imap.cutFetchAfter = bytes
    for (const text of ['one', 'two']) bench.fake.write({ text })
    await soon(() => expect(received.map(({ typed }) => typed)).toEqual(['before', 'one', 'two']))
    expect(bench.fake.imap.cutFetchAfter).toBeUndefined()
  })

  test('a mail that was deleted meanwhile is skipped', async () => {
    const { received } = await connected()
    bench.fake.imap.refuse = (command) => {
      if (!command.startsWith('UID FETCH 1 ')) return undefined
      bench.fake.imap.refuse = () => undefined
      return 'OK Completed.'
    }
    bench.fake.write({ text: 'one' })
    bench.fake.write({ text: 'two' })
    await soon(() => expect(received.map(({ typed }) => typed)).toEqual(['two']))
  })

  test('a mail whose answer cannot be read is skipped after three attempts and reported as missing, and no other mail is', async () => {
    const { received, logs, listening } = await connected()
    bench.fake.imap.refuse = (command) => {
      if (command.startsWith('UID FETCH 1 ')) bench.fake.emit('* 1 FETCH (UID 1 BODYSTRUCTURE (((')
      return undefined
    }
    bench.fake.write({ text: 'one' })
    bench.fake.write({ text: 'two' })
    await soon(() => expect(received.map(({ typed }) => typed)).toEqual(['two']))
    expect(logs.filter(({ message }) => message.includes('cannot be fetched'))).toHaveLength(1)
    expect(listening.gaps).toEqual([{ why: expect.stringMatching(/^the mail with the UID 1 cannot be fetched: ./) }])
  })

  test('a mail whose text cannot be read arrives as a line with its subject, and decides nothing', async () => {
    const { received, listening } = await connected()
    bench.fake.imap.refuse = (command) => {
      if (command.startsWith('UID FETCH 1 ') && command.includes('BODYSTRUCTURE')) bench.fake.emit('* 1 FETCH (UID 1 BODYSTRUCTURE (((')
      return undefined
    }
    bench.fake.write({ text: 'one', subject: 'approve' })
    bench.fake.write({ text: 'two' })
    await soon(() => expect(received).toHaveLength(2))
    expect(received[0]).toMatchObject({
      text: 'Subject: approve',
      typed: '',
      things: [{ kind: 'unknown', text: 'a mail whose text the mail server does not return' }],
    })
    expect(listening.gaps).toEqual([{ why: expect.stringMatching(/^the text of the mail with the UID 1 cannot be fetched: ./) }])
  })

  test('a mail with whose data the server sends other data without end is skipped, and no other mail is', async () => {
    const { received, logs } = await connected({ max_attachment_bytes: 1 })
    const sent = vi.fn()
    bench.fake.imap.refuse = (command) => {
      if (command.startsWith('UID FETCH 1 ')) {
        sent()
        for (let number = 0; number < 40; number++) bench.fake.emit(`* 1 FETCH (UID 1 X${number} {100000}\r\n${'x'.repeat(100_000)})`)
      }
      return undefined
    }
    bench.fake.write({ text: 'one' })
    bench.fake.write({ text: 'two' })
    await soon(() => expect(received.map(({ typed }) => typed)).toEqual(['two']))
    // Three attempts for the mail, and one for its header.
    expect(sent).toHaveBeenCalledTimes(4)
    expect(logs.filter(({ message }) => message.includes('cannot be fetched'))).toHaveLength(1)
  })

  test('a server that refuses a FETCH for a while gets it again', async () => {
    const { received } = await connected()
    let refusals = 3
    bench.fake.imap.refuse = (command) => (command.startsWith('UID FETCH') && refusals-- > 0 ? 'NO [SERVERBUG] Internal error' : undefined)
    bench.fake.write({ text: 'one' })
    await soon(() => expect(received.map(({ typed }) => typed)).toEqual(['one']))
  })

  test('a server that says goodbye is connected again', async () => {
    const { received } = await connected()
    bench.fake.emit('* BYE Server is shutting down')
    bench.fake.cut()
    bench.fake.write({ text: 'one' })
    await soon(() => expect(received.map(({ typed }) => typed)).toEqual(['one']))
  })

  test.each([
    ['a line that is too long', `* OK ${'x'.repeat(1_100_000)}`],
    ['a literal that is too large', '* 1 FETCH (BODY[1] {999999999}'],
    ['values that do not match', '* 1 FETCH (UID (1)'],
  ])('%s ends the connection, and the next one works', async (_, line) => {
    const { received } = await connected()
    await soon(() => expect(bench.fake.idle).toBe(1))
    bench.fake.emit(line)
    bench.fake.write({ text: 'one' })
    await soon(() => expect(received.map(({ typed }) => typed)).toEqual(['one']))
  })

  test('answers that belong to other messages are ignored', async () => {
    const { received } = await connected()
    bench.fake.imap.refuse = () => {
      bench.fake.emit('* 1 FETCH (FLAGS (\\Seen) UID 99)')
      return undefined
    }
    bench.fake.write({ text: 'one' })
    await soon(() => expect(received.map(({ typed }) => typed)).toEqual(['one']))
  })

  test.each([
    ['a folder that does not exist', { imap_folder: 'Nowhere' }, /does not open the folder Nowhere: Mailbox doesn't exist/],
    ['a wrong password', { password: 'wrong-password-01' }, /is the password valid/],
  ])('%s is shown', async (_, changes, detail) => {
    const { listening } = bench.listen(changes)
    await soon(() => expect(listening.health).toMatchObject({ state: 'down', detail: expect.stringMatching(detail) }))
    expect(JSON.stringify(bench.host.logs)).not.toContain('wrong-password')
  })
})

describe('servers', () => {
  const restart = async (options: Parameters<typeof startBench>[0]) => {
    await bench.close()
    bench = await startBench(options)
  }

  test.each([
    ['without IDLE', CAPABILITIES.filter((name) => name !== 'IDLE')],
    ['without SASL-IR', CAPABILITIES.filter((name) => name !== 'SASL-IR')],
    ['without extensions', []],
  ])('%s works', async (_, capabilities) => {
    await restart({ capabilities })
    const { received } = await connected({ idle_timeout_secs: 1 })
    bench.fake.write({ text: 'one' })
    await soon(() => expect(received.map(({ typed }) => typed)).toEqual(['one']))
  })

  test('IDLE is issued again after idle_timeout_secs', async () => {
    await connected({ idle_timeout_secs: 1 })
    await soon(() => expect(bench.fake.imap.commands.filter((command) => command === 'IDLE').length).toBeGreaterThan(2))
  })

  test('a server that refuses IDLE is polled', async () => {
    bench.fake.imap.refuse = (command) => (command.startsWith('IDLE') ? 'BAD Not now' : undefined)
    const { received } = await connected({ idle_timeout_secs: 1 })
    bench.fake.write({ text: 'one' })
    await soon(() => expect(received.map(({ typed }) => typed)).toEqual(['one']))
    await soon(() => expect(bench.fake.imap.commands).toContain('NOOP'))
  })
})

describe('attachments', () => {
  const deliver = (size: number) => {
    const bytes = Buffer.alloc(size, 'abc')
    const lines = [
      `Authentication-Results: ${AUTHSERV_ID}; dmarc=pass header.from=example.com`,
      'From: ada@example.com',
      'Subject: file',
      'Message-ID: <file@example.com>',
      'Content-Type: multipart/mixed; boundary="b"',
      '',
      '--b',
      'Content-Type: text/plain; charset=utf-8',
      '',
      'see file',
      '--b',
      'Content-Type: image/png',
      'Content-Disposition: attachment; filename="../../a\tb.png"',
      'Content-Transfer-Encoding: base64',
      '',
      (bytes.toString('base64').match(/.{1,76}/g) ?? []).join('\r\n'),
      '--b--',
      '',
    ]
    bench.fake.deliver(lines.join('\r\n'))
    return bytes
  }

  test('stay on the server until they are fetched', async () => {
    const { channel, received } = await connected()
    const bytes = deliver(100_000)
    await soon(() => expect(received).toHaveLength(1))
    expect(received[0]).toMatchObject({
      text: 'Subject: file\n\nsee file',
      attachments: [{ kind: 'image', mime: 'image/png', name: '../../a b.png' }],
    })
    expect(bench.fake.imap.commands.some((command) => command.includes('PEEK[2]'))).toBe(false)
    const [attachment] = received[0]?.attachments ?? []
    if (!attachment) throw new Error('no attachment')
    const fetchIt = (bytesMax: number, signal = NEVER) => channel.fetchMedia?.(attachment, { bytesMax, signal })
    expect(Buffer.from((await fetchIt(100_000))?.bytes ?? []).equals(bytes)).toBe(true)
    await expect(fetchIt(99_999)).rejects.toMatchObject({ code: 'too_large' })
    bench.fake.imap.cutFetchAfter = 500
    // A connection that was kept may have ended, so another one is tried.
    expect((await fetchIt(100_000))?.bytes).toHaveLength(100_000)
    const abort = new AbortController()
    abort.abort()
    await expect(fetchIt(100_000, abort.signal)).rejects.toBeInstanceOf(AppError)
    bench.fake.imap.uidValidity += 1
    bench.fake.cut()
    await soon(() => expect(bench.fake.selected).toBeGreaterThan(0))
    await expect(fetchIt(100_000)).rejects.toMatchObject({ code: 'not_found' })
  })

  test.each(['', '1/2', '1/2/3/x/y', '1/1/1) BODY[]/base64', 'a/b/c/d'])('the id %j is refused', async (id) => {
    const attachment = { kind: 'file', name: 'x', source: { id } } as const
    await expect(bench.channel().fetchMedia?.(attachment, { bytesMax: 1, signal: NEVER })).rejects.toMatchObject({
      code: 'invalid_request',
    })
  })
})

test('no secret is in a command that is logged', async () => {
  await connected()
  expect(JSON.stringify(bench.host.logs)).not.toContain(EMAIL_PASSWORD)
})
