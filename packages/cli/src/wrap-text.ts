/** Breaks a text into lines between its words. */

/** Returns the lines of a text, none longer than `width` unless one word is. */
export function wrapText(text: string, width: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line]
}

/** Returns rows of a name and its text to the right. The text is broken into lines that end before `width`. */
export function besideNames(rows: readonly (readonly [name: string, text: string])[], width: number, nameMax: number): string[] {
  const nameWidth = Math.min(nameMax, Math.max(0, ...rows.map(([name]) => name.length)))
  const indent = ' '.repeat(nameWidth + 4)
  return rows.flatMap(([name, text]) => {
    const [first = '', ...rest] = wrapText(text, width - indent.length)
    const more = rest.map((line) => indent + line)
    return name.length > nameWidth ? [`  ${name}`, indent + first, ...more] : [`  ${name.padEnd(nameWidth)}  ${first}`.trimEnd(), ...more]
  })
}
