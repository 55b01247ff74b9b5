import { expect, test } from 'vitest'
import { typedIn } from './typed.ts'

test.each([
  ['/stop\n', '/stop'],
  ['yes\n\nOn Tue, 3 Jun 2025 at 10:00, Eve <eve@example.com> wrote:\n> Deploy?', 'yes'],
  ['/status\n\n-- \nAda Lovelace\n+44 20 7946 0000', '/status'],
  ['/help\n--\nAda', '/help'],
  ['ok\n\nSent from my phone', 'ok'],
  ['yes\n\nSent from my iPhone', 'yes'],
  ['yes\n\nGet Outlook for iOS', 'yes'],
  ['yes\n\nVon: Agent <a@example.com>\nGesendet: heute\nAn: Ada', 'yes'],
  ['yes\n\nSent from my cell, please excuse any typos.', 'yes'],
  ['yes\n\nSent from my tablet <https://example.com/tablets-of-a-maker-with-a-long-name>', 'yes'],
  ['yes\n\n(sent from a phone)', 'yes'],
  ['yes\n\nFrom my iPhone 6', 'yes'],
  ['yes\n\nFrom my phone I see the log.', 'yes\n\nFrom my phone I see the log.'],
  ['yes\n\n<<sent by phone>>', 'yes'],
  ['yes\n\nSent from a mail program of a phone (https://example.com/a-page-with-a-long-address?of=a-maker)', 'yes'],
  ['yes\n\nHanki Outlook for Android<https://example.com>', 'yes'],
  ['yes \n\n Lähetetty puhelimesta \n\n > quoted', 'yes'],
  ['yes\n\nSent from my phone\nGet Outlook for iOS\n________________________________\nFrom: Agent <a@example.com>\nSent: today', 'yes'],
  ['yes\n\nSent from my desk, it is quiet here.', 'yes\n\nSent from my desk, it is quiet here.'],
  ['Sent from Berlin on Sunday\nby train, please confirm.', 'Sent from Berlin on Sunday\nby train, please confirm.'],
  ['yes\n\nأُرسلت من الـ iPhone', 'yes'],
  ['yes\n\nAz iPhone-omról küldve', 'yes'],
  ['yes\n\nTrimis de pe iPhone‑ul meu', 'yes'],
  ['yes\n\nVerzonden vanuit Outlook voor iOS', 'yes'],
  ["yes\n\nWysłano z iPhone'a", 'yes'],
  ["yes\n\niPhone'umdan gönderildi", 'yes'],
  ['yes\n\nOdesláno z iPhonu', 'yes'],
  ['yes\n\nΣτάλθηκε από το iPhone μου', 'yes'],
  ['yes\n\nנשלח מה-iPhone שלי', 'yes'],
  ['yes\n\n나의 iPhone에서 보냄', 'yes'],
  ['yes\n\nส่งจาก iPhone ของฉัน', 'yes'],
  ['yes\n\nНадіслано з iPhone', 'yes'],
  ['yes\n\nĐã gửi từ iPhone của tôi', 'yes'],
  ['yes\n\nDescargar Outlook para iOS', 'yes'],
  ['yes\n\nEnvoyé à partir de Outlook pour Android<https://aka.ms/x>', 'yes'],
  ['yes\n\niOS용 Outlook 다운로드', 'yes'],
  ['yes\n\nDownload Outlook on the new iPhone.', 'yes\n\nDownload Outlook on the new iPhone.'],
  ['yes\n\nTrimis de pe drum', 'yes\n\nTrimis de pe drum'],
  ['', ''],
  ['> quoted', ''],
  ['a -- b', 'a -- b'],
])('finds what was typed in %j', (body, typed) => {
  expect(typedIn('Re: AW: Deploy 1.2', body)).toBe(typed)
})

test('takes the subject of a mail without a text, unless it answers another mail', () => {
  expect(typedIn('/status', '')).toBe('/status')
  expect(typedIn('yes, deploy it', '> quoted')).toBe('yes, deploy it')
  for (const mark of ['Re', 'AW', 'Sv', 'Fwd', 'WG']) expect(typedIn(`${mark}: yes, deploy it`, '> quoted')).toBe('')
  expect(typedIn('I: think of milk', '')).toBe('I: think of milk')
  expect(typedIn('I: think of milk', '', false, true)).toBe('')
})

test('cuts a long text, so that it is not a command and needs little room', () => {
  expect(typedIn('', `yes ${'x'.repeat(100_000)}`)).toHaveLength(5000)
})
