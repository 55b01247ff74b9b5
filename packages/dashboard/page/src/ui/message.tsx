/** The message of a person: its text, and the files that its last lines name. */
import { Files, type NamedFile } from './files.tsx'
import { Text } from './text.tsx'

const FILE = /^\[(Image|Audio|Video|Document): ([^\]\n]{1,120})\](?: (.*))?$/
const SAVED = /^attachments\/(?:[a-z0-9_-]{1,120}\/[0-9a-f]{64}|[0-9a-f]{16})\.[a-z0-9]{1,8}/

interface MessageProps {
  readonly text: string
  readonly session: string | undefined
  /** As in `Files`. */
  readonly isStored?: boolean
}

export function Message({ text, session, isStored = true }: MessageProps) {
  const lines = text.split('\n')
  let end = lines.length
  while (end > 0 && FILE.test(lines[end - 1] ?? '')) end--
  const said = lines.slice(0, end).join('\n')
  return (
    <>
      {said !== '' && <Text value={said} />}
      <Files session={session} files={lines.slice(end).map(fileOf)} isStored={isStored} />
    </>
  )
}

function fileOf(line: string): NamedFile {
  const [, kind = '', name = '', rest = ''] = FILE.exec(line) ?? []
  const path = SAVED.exec(rest)?.[0]
  return { kind, name, path, ...(rest.startsWith('(') && { note: rest }) }
}
