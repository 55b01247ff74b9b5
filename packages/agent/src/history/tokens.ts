/** Estimates how many tokens a model counts for a text, by its scripts. The model's own counts correct it (`call-model.ts`). */
import type { ModelMessage } from '@sluice/sdk'

/** Tokens of one character: of a letter or a space, of a digit, a mark or a line break, of another alphabet, and of Chinese, Japanese or Korean. */
const LETTER = 1 / 4
const MARK = 2 / 5
const OTHER_ALPHABET = 1 / 2
const CJK = 1
const TOKENS_PER_MESSAGE = 4
/** The tokens of a picture, a document or a recording, whose size in tokens only the provider knows. */
const TOKENS_PER_FILE = 1500

export function estimateTokens(text: string): number {
  let tokens = 0
  for (let at = 0; at < text.length; at++) tokens += tokensOf(text.charCodeAt(at))
  return Math.ceil(tokens)
}

function tokensOf(code: number): number {
  if (code < 0x80) return (code | 0x20) - 0x61 < 26 && (code | 0x20) >= 0x61 ? LETTER : code === 0x20 ? LETTER : MARK
  return code >= 0x2e80 ? CJK : OTHER_ALPHABET
}

/** Returns how many characters of this text have this many tokens. */
export const charsOfTokens = (text: string, tokens: number): number => {
  const estimated = estimateTokens(text)
  return estimated <= tokens ? text.length : Math.floor((text.length * tokens) / estimated)
}

/** The tokens of a message that a model reads. */
export const messageTokens = ({ role, content }: ModelMessage): number =>
  TOKENS_PER_MESSAGE + (role === 'system' ? estimateTokens(content) : partsTokens(content))

function partsTokens(parts: Exclude<ModelMessage, { role: 'system' }>['content']): number {
  let tokens = 0
  for (const part of parts) {
    if (part.type === 'text' || part.type === 'reasoning') tokens += estimateTokens(part.text)
    else if (part.type === 'tool-call') tokens += estimateTokens(part.toolName) + estimateTokens(JSON.stringify(part.input) ?? '')
    else if (part.type === 'tool-result' && 'value' in part.output) tokens += estimateTokens(plain(part.output.value))
    else if (part.type === 'file') tokens += TOKENS_PER_FILE
  }
  return tokens
}

const plain = (value: unknown): string => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''))

export const messagesTokens = (messages: readonly ModelMessage[]): number =>
  messages.reduce((tokens, message) => tokens + messageTokens(message), 0)
