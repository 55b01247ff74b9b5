/** Asks the model for one summary, with limits that leave room for the reply and for the answer of the turn. */
import { AppError, type Clock, type SessionSummary } from '@sluice/sdk'
import { summaryCharsMax } from '../history/history.ts'
import { shorten } from '../history/shorten.ts'
import { charsOfTokens, estimateTokens } from '../history/tokens.ts'
import type { AskModel } from '../model/ask-model.ts'
import type { ModelAsk } from '../model/call-model.ts'
import type { ReplyEnd } from '../model/model-reply.ts'
import type { TurnScope } from '../turn/turn-scope.ts'
import { type Block, summaryInstruction, summaryRequest } from './summary-text.ts'

export interface WriteSummaryDeps {
  readonly askModel: AskModel
  readonly clock: Clock
}

/** The part of the turn's limits, of time and of tokens, that its summaries may use. */
export const TURN_SHARE = 1 / 2
/** The largest part of the window that a reply takes. Reasoning counts too. */
const OUTPUT_SHARE = 1 / 4
const OUTPUT_TOKENS_MAX = 16_000
/** A reply may have this size even in the smallest window. */
const OUTPUT_TOKENS_MIN = 500
const SUMMARY_CHARS_MAX = 8000
const CHARS_PER_WORD = 8
/** The room for the line about a cut, so that a cut summary is not cut again when it is used. */
const CUT_CHARS = 50
/** The texts of one call have this size even in the smallest window. */
const SOURCE_TOKENS_MIN = 250
/** The room for the instruction. */
const INSTRUCTION_TOKENS = 600
/** The ends of a reply that is a summary. One that is cut at its end still has the oldest facts. */
const COMPLETE: ReadonlySet<ReplyEnd> = new Set(['stop', 'length', 'other'])

/** Asks the model for a summary of the previous one and of as many blocks as its window takes. */
export async function writeSummary(
  { askModel, clock }: WriteSummaryDeps,
  scope: TurnScope,
  {
    previous,
    blocks,
    focus = '',
  }: { readonly previous: SessionSummary | undefined; readonly blocks: readonly Block[]; readonly focus?: string },
): Promise<SessionSummary> {
  let charsMax = 0
  let source: Block = { upTo: 0, upToMs: 0, text: '', untrusted: false }
  const prompt: ModelAsk['prompt'] = (tokensMax) => {
    charsMax = Math.min(SUMMARY_CHARS_MAX, summaryCharsMax(tokensMax))
    const before = previous ? shorten(previous.text, charsMax) : ''
    source = takeBlocks(blocks, sourceTokensMax(scope, tokensMax) - estimateTokens(before))
    return [
      { role: 'system', content: summaryInstruction(Math.ceil(charsMax / CHARS_PER_WORD), focus) },
      { role: 'user', content: [{ type: 'text', text: summaryRequest(before, source.text) }] },
    ]
  }
  const reply = await askModel(scope, { prompt, mayCallTools: false, outputTokensMax })
  const text = reply.text.trim()
  if (text === '' || !COMPLETE.has(reply.finish)) throw new AppError('upstream', `the model wrote no summary (${reply.finish})`)
  return {
    text: (text.length > charsMax ? shorten(text, charsMax - CUT_CHARS) : text).toWellFormed(),
    upTo: source.upTo,
    upToMs: source.upToMs,
    model: scope.progress.model ?? '',
    atMs: clock.nowMs(),
    untrusted: previous?.untrusted || source.untrusted,
  }
}

const outputTokensMax = (tokensMax: number): number =>
  Math.min(OUTPUT_TOKENS_MAX, Math.max(OUTPUT_TOKENS_MIN, Math.floor(tokensMax * OUTPUT_SHARE)))

/** Returns the size of the texts to summarise in one call. The window also holds the reply, and the turn needs tokens for its answer. */
export function sourceTokensMax({ turnLimits }: TurnScope, tokensMax: number): number {
  const tokens = Math.min(tokensMax - outputTokensMax(tokensMax), turnLimits.tokens * TURN_SHARE)
  return Math.max(SOURCE_TOKENS_MIN, tokens - INSTRUCTION_TOKENS)
}

/** Takes the oldest blocks that fit, and at least one, if necessary shortened. */
function takeBlocks(blocks: readonly Block[], tokensMax: number): Block {
  const texts: string[] = []
  let tokens = 0
  let last: Pick<Block, 'upTo' | 'upToMs'> = { upTo: 0, upToMs: 0 }
  let untrusted = false
  for (const block of blocks) {
    const text = shorten(block.text, charsOfTokens(block.text, tokensMax))
    const ofText = estimateTokens(text) + 1
    if (texts.length > 0 && tokens + ofText > tokensMax) break
    texts.push(text)
    tokens += ofText
    last = block
    untrusted ||= block.untrusted
  }
  return { upTo: last.upTo, upToMs: last.upToMs, text: texts.join('\n'), untrusted }
}
