/** Reads answers that are one JSON value per line. */

/** Yields the JSON values of a stream of lines. */
export async function* linesOf<Line>(stream: ReadableStream<Uint8Array>): AsyncGenerator<Line> {
  let rest = ''
  for await (const text of stream.pipeThrough(
    new TextDecoderStream() as unknown as ReadableWritablePair<string, Uint8Array>,
  ) as unknown as AsyncIterable<string>) {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) if (line.trim() !== '') yield JSON.parse(line) as Line
  }
  if (rest.trim() !== '') yield JSON.parse(rest) as Line
}
