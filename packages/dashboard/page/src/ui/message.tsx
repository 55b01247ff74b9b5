/** The message of a person: its text, and the files that its last lines name. */
import { Name, Text } from './text.tsx'

const FILE = /^\[(Image|Audio|Video|Document): ([^\]\n]{1,120})\](?: (.*))?$/

export function Message({ text }: { readonly text: string }) {
  const lines = text.split('\n')
  let end = lines.length
  while (end > 0 && FILE.test(lines[end - 1] ?? '')) end--
  const said = lines.slice(0, end).join('\n')
  const files = lines.slice(end).map((line) => FILE.exec(line))
  return (
    <>
      {said !== '' && <Text value={said} />}
      {files.length > 0 && (
        <ul class="attached" aria-label="Attached files">
          {files.map((file, index) => (
            <li key={index} class="badge" title={file?.[3]}>
              {file?.[1]}: <Name value={file?.[2] ?? ''} />
              {file?.[3]?.startsWith('(') && (
                <span class="quiet">
                  {' '}
                  <Name value={file[3]} />
                </span>
              )}
            </li>
          ))}
        </ul>
      )}
    </>
  )
}
