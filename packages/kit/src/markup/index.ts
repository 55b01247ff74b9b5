/** Styled texts: splitting them, and writing them as the platforms read them. */
export { writeHtml } from './html.ts'
export { splitStyled } from './styled-text.ts'
export { writeCommonMark, writeDiscord, writeLark, writeUnescaped, writeWhatsapp } from './written-marks.ts'
