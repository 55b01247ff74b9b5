/** The header that makes a browser save an answer under a name (RFC 6266). */

const NAME_CHARS_MAX = 150

/** The plain name has only safe ASCII characters; browsers prefer the other form, which has any character. */
export function contentDisposition(name: string): string {
  const safe = Array.from(name.toWellFormed().replace(/[\p{C}\\/:*?"<>|]+/gu, '_'))
    .slice(0, NAME_CHARS_MAX)
    .join('')
  const whole = /[^. ](?:.*[^. ])?/s.exec(safe)?.[0] ?? 'file'
  const encoded = encodeURIComponent(whole).replace(/['()*!]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
  return `attachment; filename="${whole.replace(/[^\w.-]+/g, '_')}"; filename*=UTF-8''${encoded}`
}
