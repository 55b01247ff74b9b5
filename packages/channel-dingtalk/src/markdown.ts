/** Turns the text of a reply into DingTalk's markdown. */

const FENCE = /^\s*(?:```|~~~)/
const TITLE_CHARS_MAX = 40

/** DingTalk joins lines unless two blanks end the first. Lines of code stay as they are. */
export function toMarkdown(plain: string): string {
  let isCode = false
  const lines = plain.split('\n')
  return lines
    .map((line, index) => {
      const isFence = FENCE.test(line)
      if (isFence) isCode = !isCode
      const next = lines[index + 1]
      return isCode || isFence || next === undefined || line.trim() === '' || next.trim() === '' ? line : `${line}  `
    })
    .join('\n')
}

/** Returns the text that a notification shows: the first line without its markup. */
export function titleOf(plain: string): string {
  const line = plain.split('\n').find((each) => /[\p{L}\p{N}]/u.test(each)) ?? ''
  const words = line.replace(/^[\s#>*\-`~]+/, '').trim()
  return [...words].slice(0, TITLE_CHARS_MAX).join('') || 'Sluice'
}
