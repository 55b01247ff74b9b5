/** The reaction by which the bot shows that it has a message, in the language of the message. */
import { pathSegment } from '@sluice/kit'
import type { Inbound } from '@sluice/sdk'
import type { WorkchatApi } from './api.ts'

export type Locale = 'zh-CN' | 'zh-TW' | 'en' | 'ja'

const ENGLISH = ['OK', 'THUMBSUP', 'THANKS', 'MUSCLE', 'FINGERHEART', 'APPLAUSE', 'SMILE', 'DONE']

/** The platform's names of reactions that people use to say that they have seen a message. */
export const EMOJI: Readonly<Record<Locale, readonly string[]>> = {
  'zh-CN': ['OK', 'JIAYI', 'APPLAUSE', 'THUMBSUP', 'MUSCLE', 'SMILE', 'DONE'],
  'zh-TW': ['OK', 'JIAYI', 'APPLAUSE', 'THUMBSUP', 'FINGERHEART', 'SMILE', 'DONE'],
  en: ENGLISH,
  ja: ENGLISH,
}

/** Frequent characters that only one of the two scripts of Chinese has. */
const TRADITIONAL = new Set('們個這來時會國說對學為後還過發經見關現開東長問車書電話請謝嗎麼給讓樣點應該單號頭體實際')
const SIMPLIFIED = new Set('们个这来时会国说对学为后还过发经见关现开东长问车书电话请谢吗么给让样点应该单号头体实际')
const KANA = /[\u3041-\u30ff\uff66-\uff9f]/
const HAN = /\p{Script=Han}/u

/** Adds the reaction. The platform shows a repeated reaction once. */
export async function acknowledge(api: WorkchatApi, message: Inbound, signal: AbortSignal): Promise<void> {
  const path = `/im/v1/messages/${pathSegment(message.id)}/reactions` as const
  await api.call({ method: 'POST', path, body: { reaction_type: { emoji_type: emojiFor(message) } }, signal })
}

/** Always the same for one message, so that a repeat adds no second reaction. */
export function emojiFor({ id, text, to }: Pick<Inbound, 'id' | 'text' | 'to'>): string {
  const emoji = EMOJI[localeOf(text, to.more?.locale)]
  let sum = 0
  for (const character of id) sum = (sum * 31 + (character.codePointAt(0) ?? 0)) % 1_000_003
  return emoji[sum % emoji.length] ?? 'OK'
}

/** Returns the named language, such as `zh_tw`, or else the language whose script the text has. */
export function localeOf(text: string, named = ''): Locale {
  return localeNamed(named.toLowerCase().replaceAll('_', '-')) ?? localeWritten(text)
}

function localeNamed(name: string): Locale | undefined {
  if (/^zh-(?:tw|hk|mo|hant)\b/.test(name)) return 'zh-TW'
  if (/^zh\b/.test(name)) return 'zh-CN'
  if (/^ja\b/.test(name)) return 'ja'
  return /^en\b/.test(name) ? 'en' : undefined
}

function localeWritten(text: string): Locale {
  if (KANA.test(text)) return 'ja'
  let [traditional, simplified] = [0, 0]
  for (const character of text) {
    const isBoth = TRADITIONAL.has(character) && SIMPLIFIED.has(character)
    if (TRADITIONAL.has(character) && !isBoth) traditional += 1
    if (SIMPLIFIED.has(character) && !isBoth) simplified += 1
  }
  if (traditional > simplified) return 'zh-TW'
  return simplified > 0 || HAN.test(text) ? 'zh-CN' : 'en'
}
