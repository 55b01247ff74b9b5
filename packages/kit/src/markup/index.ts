/** Styled texts: splitting them, and writing them as the platforms read them. */
export { mailTexts, writeHtml } from './html.ts'
export { sliceStyled, splitStyled, withAddresses } from './styled-text.ts'
export { writeCommonMark, writeDiscord, writeLark, writeUnescaped, writeWhatsapp } from './written-marks.ts'
