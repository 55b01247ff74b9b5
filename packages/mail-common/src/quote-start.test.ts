import { expect, test } from 'vitest'
import { quoteStart } from './quote-start.ts'

test.each([
  ['> quoted'],
  ['  > quoted'],
  ['On Tue, 3 Jun 2025 at 10:00, Eve <eve@example.com> wrote:\n> quoted'],
  ['Am 03.06.2025 um 10:00 schrieb Eve:\n> quoted'],
  ['Le mar. 3 juin 2025 à 10:00, Eve a écrit :\n> quoted'],
  ['---------- Forwarded message ---------\nFrom: Eve <eve@example.com>'],
  ['-----Original Message-----\nFrom: Eve'],
  ['Begin forwarded message:\nquoted'],
  ['________________________________\nFrom: Eve <eve@example.com>'],
  ['From: Eve <eve@example.com>\nSent: Tuesday'],
])('finds the quote of %j', (quote) => {
  const own = 'Subject: Hi\n\nPlease read this.\n\n'
  expect(quoteStart(`${own}${quote}\nmore`)).toBe(own.length)
})

const asked = 'file_write wants to run'

test.each([
  ['Gmail', `On Sun, Nov 29, 2026 at 1:52 AM Agent <agent@example.com> wrote:\n\n> ${asked}`],
  ['Gmail, wrapped', `On Sun, Nov 29, 2026 at 1:52 AM Assistant of the Example Office <\nassistant@mail.example.com> wrote:\n\n> ${asked}`],
  ['Apple Mail, wrapped', `On 29 Nov 2026, at 01:52, Assistant of the Example Office\n<assistant@mail.example.com> wrote:\n\n> ${asked}`],
  ['Gmail in French, wrapped', `Le dim. 29 nov. 2026 à 01:52, Assistant <assistant@mail.example.com>\na écrit :\n\n> ${asked}`],
  ['Gmail in Japanese', `2026年11月29日(日) 1:52 Agent <agent@example.com>:\n\n> ${asked}`],
  ['Apple Mail without marks', `On 29 Nov 2026, at 01:52, Agent <agent@example.com> wrote:\n\n${asked}`],
  ['Outlook', `From: Agent <agent@example.com>\nSent: Sunday, November 29, 2026 1:52 AM\nTo: Ada\nSubject: x\n\n${asked}`],
  ['Outlook, wrapped', `From: Assistant of the Office \n<assistant@mail.example.com>\nSent: Sunday\nTo: Ada\nSubject: x\n\n${asked}`],
  ['Outlook without an address', `From: Agent\nSent: Sunday, November 29, 2026 1:52 AM\nTo: Ada\n\n${asked}`],
  ['Outlook in bold', `*From:* Agent <agent@example.com>\n*Sent:* Sunday\n*To:* Ada\n\n${asked}`],
  ['Outlook in German', `Von: Agent <agent@example.com>\nGesendet: Sonntag, 29. November 2026 01:52\nAn: Ada\nBetreff: x\n\n${asked}`],
  ['Outlook in French', `De : Agent <agent@example.com>\nEnvoyé : dimanche 29 novembre 2026 01:52\nÀ : Ada\nObjet : x\n\n${asked}`],
  ['Outlook in Italian', `Da: Agent <agent@example.com>\nInviato: domenica 29 novembre 2026\nA: Ada\nOggetto: x\n\n${asked}`],
  ['Outlook in Dutch', `Van: Agent <agent@example.com>\nVerzonden: zondag 29 november\nAan: Ada\nOnderwerp: x\n\n${asked}`],
  ['Outlook in Spanish', `De: Agent <agent@example.com>\nEnviado el: domingo, 29 de noviembre\nPara: Ada\nAsunto: x\n\n${asked}`],
  ['Outlook in Japanese', `差出人: Agent <agent@example.com>\n送信日時: 2026年11月29日 1:52\n宛先: Ada\n件名: x\n\n${asked}`],
  ['Outlook in Chinese', `发件人: Agent <agent@example.com>\n发送时间: 2026年11月29日 1:52\n收件人: Ada\n主题: x\n\n${asked}`],
  ['Outlook in another language', `Nadawca: Agent <agent@example.com>\nKiedy: niedziela\nDo: Ada\nTemat: x\n\n${asked}`],
  ['Thunderbird in Polish', `W dniu 29.11.2026 o 01:52, Agent pisze:\n> ${asked}`],
  ['Yandex', `29.11.2026, 01:52, "Agent" <agent@example.com>:\n> ${asked}`],
  ['Gmail in German, with the name first and wrapped', `Agent <agent@example.com> schrieb am So., 29.\nNov. 2026, 01:52:\n\n> ${asked}`],
  ['Outlook on the web in Finnish, wrapped', `su 29. marraskuuta 2026 klo 1.52 Agent\n<agent@example.com> kirjoitti:\n\n${asked}`],
  ['Gmail in Russian', `вс, 29 нояб. 2026 г. в 01:52, Agent <agent@example.com>:\n\n${asked}`],
  ['Apple Mail in Portuguese, wrapped', `Em 29 de novembro de 2026 às 01:52:35, Agent (\nagent@example.com) escreveu:\n\n${asked}`],
  ['BlueMail in Italian', `In data 29 novembre 2026 01:52:31 "Agent" <agent@example.com> ha scritto:\n\n${asked}`],
  ['Zoho', `---- On Sun, 29 Nov 2026 01:52:50 +0530 agent-one@example.com wrote ----\n\n${asked}`],
  ['Gmail of 2011', `2026/11/29 Agent <agent@example.com>\n\n> ${asked}`],
  ['a header block that begins with the date', `Date: Sun, 29 Nov 2026 01:52:02 -0600\nFrom: agent@example.com\nTo: Ada\n\n${asked}`],
  ['Hotmail', `Date: Sun, 29 Nov 2026 01:52:02 +0400\nSubject: x\nFrom: agent@example.com\nTo: Ada\n\n${asked}`],
  ['a header block of two lines', `Date: Sun, 29 Nov 2026 01:52:02 -0600\nTo: ada@example.com\n\n${asked}`],
  ['Outlook in bold, wrapped', `*From:* agent@example.com [mailto:\nagent@example.com]\n*Sent:* Sunday\n*To:* Ada\n\n${asked}`],
  ['a phone in Danish', `-------- Oprindelig besked --------\nFra: Agent <agent@example.com>\nDato: 29.11.2026 01.52\n\n${asked}`],
  ['a phone in French', `-------- Message d'origine --------\nDe : Agent <agent@example.com>\n\n${asked}`],
  ['Outlook in Czech', `Od: Agent <agent@example.com>\nDatum: neděle 29. listopadu 2026 1:52\nKomu: ada@example.com\n${asked}`],
  ['HubSpot in Finnish', `---------- Edelleenlähetetty viesti ---------\nLähettäjä: Agent <agent@example.com>\n\n${asked}`],
  ['a header of one line', `From: Agent <agent@example.com>\n\n${asked}`],
  ['a header of one line with a bare address', `Von: agent@example.com\n\n> ${asked}`],
  ['a client that writes no colon', `On Sun, 29 Nov 2026 01:52:43 -0200 Agent <agent@example.com> wrote\n\n${asked}`],
  ['a client that begins with the time', `01:52 AM, November 29, 2026, "Agent - Office" <agent@example.com>:\n\n${asked}`],
  ['Mail.ru in English', `Sunday, 29 November 2026, 1:52 AM +0300 from agent@example.com <agent@example.com>:\n\n${asked}`],
  ['headers on one line', `Date: Sun, 29 Nov 2026 01:52:10 +0000 From: agent@example.com To: Lee, Ada Subject: x\n\n${asked}`],
  ['a mailing list in German', `agent via Example Forum <forum@example.com> schrieb:\n>agent posted`],
  [
    'Outlook with links at addresses',
    `From: Agent <agent@example.com<mailto:agent@example.com>>\nReply-To: "A" <a@example.com>\n\n${asked}`,
  ],
  ['Gmail in Spanish, wrapped twice', `El dom, 29 nov 2026 a las 1:52, Agent (<agent@example.com>)\nescribió:\n\n> ${asked}`],
  ['a phone without a year, wrapped twice', `On Sun, Nov 29, Assistant of the Office\n<agent@example.com>\nwrote:\n> ${asked}`],
  ['Apple Mail in Hungarian', `Továbbított levél kezdete:\n\nFeladó: Agent <agent@example.com>\nDátum: 2026. november 29.\n\n${asked}`],
  ['Apple Mail in Ukrainian', `Початок листа, що пересилається:\n\nВід кого: Agent <agent@example.com>\nТема: x\n\n${asked}`],
  ['Thunderbird in Slovak', `-------- Preposlaná správa --- Forwarded Message --------\n\n${asked}`],
  ['Gmail in Romanian', `De la: Agent <agent@example.com>\nDate: dum., 29 nov. 2026 01:52\n\n${asked}`],
  ['an old client', `Forwarded message:\n\n> From: Agent <agent@example.com>`],
  ['a list', `_______________________________________________\nOps mailing list`],
  ['a list with a short rule', `__\nops mailing list\nops@example.com\nhttps://lists.example.com/mailman/listinfo/ops`],
  [
    'Outlook, indented',
    `   De : Agent<mailto:agent@example.com>\n   Envoyé le :dimanche 29 novembre 2026 01:52\n   À : ada@example.com\n\n${asked}`,
  ],
  [
    'Yahoo in French',
    `      De : Agent <agent@example.com>\n À : Ada <ada@example.com>\n Envoyé le : Dimanche 29 novembre 2026\n\n${asked}`,
  ],
  ['Outlook in bold, indented and wrapped', `  *From:* agent@example.com [mailto:\n  agent@example.com]\n  *Sent:* Sunday\n\n${asked}`],
  ['Outlook below a short rule', ` ------------------------------\n*From:* Agent <agent@example.com>\n*Sent:* Sunday\n\n${asked}`],
  ['headers below a rule and a date', `====\n\nMessage du : 29/11/2026 01:52\nDe : "Agent" <agent@example.com>\nA : Ada\n\n${asked}`],
  ['Outlook in a language that is not known', `${'_'.repeat(32)}\nKutoka: Agent\n\n${asked}`],
  ['Gmail in Norwegian, wrapped before the bracket', `søn. 29. nov. 2026 kl. 01:52 skrev Agent <agent@example.com\n>:\n\n> ${asked}`],
  [
    'a phone, wrapped three times',
    `On Nov 29, 2026, at 01:52 AM, Agent <\n4c85cfa4c44e1721d66e3e8f4\n@mail.example.com>\nwrote:\n\n${asked}`,
  ],
  [
    'Gmail in Hebrew',
    `\u202bבתאריך יום א׳, 29 בנוב׳ 2026 ב-1:52 מאת \u202aAgent\u202c\u200f <\u202aagent@example.com\u202c\u200f>:\u202c\n\n> ${asked}`,
  ],
  [
    'Gmail in Hebrew, wrapped',
    `בתאריך יום א׳, 29 בנוב׳ 2026 ב-1:52 מאת \u202aAgent\u202c\u200f <\n\u202aagent@example.com\u202c\u200f>:\u202c\n\u200f\n> ${asked}`,
  ],
  [
    'Gmail in Hebrew, without marks',
    `\u202bבתאריך יום א׳, 29 בנוב׳ 2026 ב-1:52 מאת \u202aAgent\u202c\u200f <\u202aagent@example.com\u202c\u200f>:\u202c\n\n${asked}`,
  ],
  [
    'Gmail in Arabic, wrapped',
    `\u202bفي الأحد، 29 نوفمبر 2026 في 1:52 ص، تمت كتابة ما يلي بواسطة Agent\n<agent@example.com>:\u202c\n\n> ${asked}`,
  ],
  ['Gmail in Arabic, with its own digits', `في الأحد، ٢٩ نوفمبر ٢٠٢٦, ١:٥٢ ص Agent <agent@example.com> كتب:\u200f\n\n${asked}`],
  ['with marks behind a mark of direction', `\u200f> ${asked}`],
  ['Gmail in Ukrainian', `29 лист. 2026 р. 01:52 "Agent" agent@example.com пише:\n\n${asked}`],
  ['a name without an address', `2026-11-29 01:52 GMT+01:00 Agent of the Office\n\n> ${asked}`],
  ['a mailing list without an address', `agent via Example Forum wrote:\n\n> ${asked}`],
  ['a forum', `Posted by agent on 11/29/2026\n\n> ${asked}`],
  ['a rule in bold', `*----- Original Message -----*\n\n${asked}`],
  // From the tests of https://github.com/EdgeTier/email-reply-parser and https://github.com/alfonsrv/mail-parser-reply.
  [
    'Apple Mail in Polish, with a bare address',
    `Wiadomość napisana przez Agent agent@example.com w dniu 29.11.2026, o godz. 01:52:\n${asked}`,
  ],
  ['Gmail in Hungarian', `Agent <agent@example.com> ezt írta (időpont: 2026. nov. 29., V 1:52):\n${asked}`],
  ['T-Online', `-----Original-Nachricht-----\nBetreff: x\nDatum: 2026-11-29T01:52:10+0100\nVon: "Agent" <agent@example.com>\n\n${asked}`],
  ['Seznam', `---------- Původní e-mail ----------\nOd: Agent <agent@example.com>\nKomu: ada@example.com\n\n${asked}`],
  ['Thunderbird in Hungarian', `2026. 11. 29. 1:52 keltezéssel, Agent írta:\n${asked}`],
  ['Thunderbird in Korean', `2026-11-29 오전 1:52에 Agent 이(가) 쓴 글:\n${asked}`],
  ['Roundcube in Russian', `Agent писал 2026-11-29 01:52:\n\n${asked}`],
  ['Gmail in Thai', `ในวันที่ อา. 29 พ.ย. 2026 เวลา 1:52 Agent <agent@example.com> เขียนว่า:\n\n${asked}`],
  ['Gmail in Indonesian, wrapped', `Pada tanggal Min, 29 Nov 2026 pukul 01.52 Agent\n<agent@example.com> menulis:\n\n${asked}`],
  ['Gmail in Bulgarian', `На нд, 29.11.2026 г. в 1:52 ч. Agent <agent@example.com> написа:\n\n${asked}`],
  ['Gmail in Persian', `در تاریخ یکشنبه ۲۹ نوامبر ۲۰۲۶،‏ ۱:۵۲ Agent <agent@example.com> نوشت:\n\n${asked}`],
  ['Gmail in Catalan', `Missatge de Agent <agent@example.com> del dia dg., 29 de nov. 2026 a les 1:52:\n\n${asked}`],
  ['Apple Mail in Slovak, wrapped', `Dňa 29. 11. 2026 o 1:52 používateľ Agent\n<agent@example.com> napísal:\n\n${asked}`],
  ['Mail.ru', `Воскресенье, 29 ноября 2026, 1:52 +03:00 от Agent <agent@example.com>:\n\n${asked}`],
  ['Tuta', `Nov 29, 2026, 01:52 by agent@example.com:\n\n${asked}`],
  ['two headers on one line', `From: agent@example.com Date: Sun, 29 Nov 2026 01:52:12 -0700\n\n${asked}`],
])('finds the whole attribution of %s', (_, quote) => {
  expect(quoteStart(`yes\n\n${quote}`)).toBe(5)
})

test.each([
  ['Please do this.\nOn the staging host, run these two commands:\nrestart it\nand send me the log.'],
  ['On 29 Nov 2026, please run this:\nrestart it'],
  ['Bonjour,\nLe texte à traduire est le suivant :\nBonne année'],
  ['Hallo,\nAm besten machst du Folgendes:\nServer neu starten'],
  ['Hola,\nEl pedido nuevo es este:\n3 cajas'],
  ['Ciao,\nIl testo da inviare:\nciao a tutti'],
  ['Note: call Bob\nTime: 10:00\nPlace: office'],
  ['Formats of times:\n\n2026-11-29 14:30:25\n29.11.2026 14:30\nNov 29, 2026 at 14:30\n\nThese are examples.'],
  ['Date: tomorrow\nTo: the office'],
  ['Date: Sunday, From: noon To: midnight Subject: the garden'],
  ['Monday, 30 November 2026: ask bob@example.com:\nis it done?'],
  ['On 29 Nov 2026 at 14:30 Bob <bob@example.com> wrote to me, and I have not answered.'],
  ['On your remote host you can run:\n\n    telnet 127.0.0.1 52698'],
  ['I wrote to bob@example.com on 29.11.2026 at 14:30.\nHe has not answered.'],
  ['שלחתי לבוב את המכתב הזה ב-10:30:\nשלום'],
  ['وضعت المكتبة هذا في 2026:\nمرحبا'],
  ['Write to: bob@example.com\nSubject: hello'],
  ['From: bob@example.com\n\nThis is the address that I mean.'],
  ['Copy: Bob <bob@example.com>\n\nHe may read it.'],
  ['From: Bob <bob@example.com>\nand from nobody else.'],
  ['The first part.\n\n________________________________________\n\nThe second part.'],
  ['The first part.\n\n----\n\n====\n\nThe second part.'],
  ['See <https://example.com/a\n> for more.'],
  ['Ask Bob <bob@example.com\n> and Eve.'],
  ['Please send on 29.11.2026 at 14:30 to Bob <bob@example.com>:\n- the contract'],
  ['Send it by 14:30 to Bob <bob@example.com>:\n\nthe contract'],
  ['Kérlek írd meg:\na szerver él'],
])('finds no quote in the own words %j', (text) => {
  expect(quoteStart(text)).toBe(-1)
})

test.each(['reply On Sun, Nov 29, 2026 at 1:52 AM, bob@example.com wrote:', 'reply--- On Sun, Nov 29, 2026 at 1:52 AM, Bob wrote:'])(
  'keeps the own words before an attribution on one line: %s',
  (line) => {
    expect(`${line}\n> quoted`.slice(0, quoteStart(`${line}\n> quoted`)).trim()).toBe('reply')
  },
)

test.each([['Subject: On Monday: call\n\nOn Monday I am away.'], ['a > b'], ['-- \nAda'], ['']])('finds none in %j', (text) => {
  expect(quoteStart(text)).toBe(-1)
})

test('takes time in proportion to a long text', () => {
  expect(quoteStart(`${'On a:\n'.repeat(40_000)}${'-'.repeat(100_000)}${' '.repeat(50_000)}`)).toBe(-1)
})
