/** Splits a long reply into messages of the length that a platform accepts. Each message reads well on its own. */
import type { Channel } from '@sluice/sdk'
import { bestBreak, resume } from './split-text-break.ts'
import { type CodeFence, codeFences, fenceAround } from './split-text-fences.ts'
import { measure, reach } from './split-text-units.ts'

/**
 * Returns the parts of `text`, none longer than `limits` and none blank; the text itself if it is short enough. A code fence that a
 * part cuts is closed at the end of the part and opened again in the next, with the same info string unless that takes half a part. A
 * character as people see it is cut only if it is longer than a part. White space around a break is dropped, but nothing
 * else. If the marks of a fence leave no room for code, the fence is split like any text. Takes linear time.
 */
export function splitText(text: string, limits: Channel['limits']): string[] {
  if (text.trim() === '') return []
  if (reach(text, 0, limits) === text.length) return [text]
  return splitLong(text.trimEnd(), limits)
}

/** A fence, and the lines that open it again and close it. */
interface Reopened extends CodeFence {
  readonly opening: string
  readonly closing: string
}

function splitLong(text: string, { text: limit, unit }: Channel['limits']): string[] {
  const leavesHalf = ({ opening, closing }: Reopened): boolean => measure(opening + closing, unit) <= limit / 2
  const fences = codeFences(text).flatMap((fence): Reopened[] => {
    const bare = { ...fence, opening: `${fence.marks}\n`, closing: `\n${fence.marks}` }
    const full = { ...bare, opening: `${fence.marks}${fence.info}\n` }
    return [full, bare].filter(leavesHalf).slice(0, 1)
  })

  /** Returns the end of the part that begins at `from` and has this much room. */
  const endOfPart = (from: number, room: number): number => {
    const open = reach(text, from, { text: room, unit })
    const fence = fenceAround(fences, open)
    const end = fence ? reach(text, from, { text: room - measure(fence.closing, unit), unit }) : open
    // If none of its code would fit, the whole fence moves to the next part.
    if (fence && end <= fence.code && fence.start > from) return fence.start - 1
    if (end === text.length) return end
    return bestBreak(text, from, { end, avoid: (at) => at < (fenceAround(fences, at)?.code ?? 0) })
  }

  const parts: string[] = []
  for (let at = 0; at < text.length; ) {
    const head = fenceAround(fences, at)?.opening ?? ''
    const end = endOfPart(at, limit - measure(head, unit))
    const cut = fenceAround(fences, end)
    const body = text.slice(at, end).trimEnd()
    if (body !== '') parts.push(head + body + (cut?.closing ?? ''))
    at = resume(text, end)
    // The closing marks of the fence were already added.
    if (cut && at >= cut.codeEnd) at = resume(text, Math.min(cut.end, text.length))
  }
  return parts
}
