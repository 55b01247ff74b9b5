// Reads how a container of the image runs from the last stage of the Dockerfile, so that an image made without an engine runs in the same way.
const UNITS = { s: 1e9, m: 60e9, h: 3600e9 }

const words = (text) => (text.startsWith('[') ? JSON.parse(text) : text.split(/\s+/))
const members = (names) => Object.fromEntries(names.map((name) => [name, {}]))

/** Returns a duration such as `15s` in nanoseconds. */
function nanoseconds(text) {
  const [, amount, unit] = /^(\d+)([smh])$/.exec(text) ?? []
  if (unit === undefined) throw new Error(`'${text}' is not a duration of a Dockerfile, such as 30s`)
  return Number(amount) * UNITS[unit]
}

function healthcheck(text) {
  const options = Object.fromEntries([...text.matchAll(/--([\w-]+)=(\S+)/g)].map(([, name, value]) => [name, value]))
  return {
    Test: ['CMD', ...JSON.parse(text.slice(text.indexOf('CMD ') + 'CMD '.length))],
    Interval: nanoseconds(options.interval),
    Timeout: nanoseconds(options.timeout),
    StartPeriod: nanoseconds(options['start-period']),
    Retries: Number(options.retries),
  }
}

const INSTRUCTIONS = {
  COPY: () => ({}),
  USER: (text) => ({ User: text }),
  ENV: (text) => ({ Env: words(text) }),
  WORKDIR: (text) => ({ WorkingDir: text }),
  VOLUME: (text) => ({ Volumes: members(words(text)) }),
  EXPOSE: (text) => ({ ExposedPorts: members(words(text).map((port) => (port.includes('/') ? port : `${port}/tcp`))) }),
  STOPSIGNAL: (text) => ({ StopSignal: text }),
  HEALTHCHECK: (text) => ({ Healthcheck: healthcheck(text) }),
  ENTRYPOINT: (text) => ({ Entrypoint: words(text) }),
  CMD: (text) => ({ Cmd: words(text) }),
}

/** Returns the members of the last stage as in the `config` of an OCI image. Throws at an instruction that it does not know. */
export function runConfig(dockerfile) {
  const lines = dockerfile
    .replaceAll(/\\\n/g, ' ')
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.startsWith('#'))
  const stage = lines.slice(lines.findLastIndex((line) => line.startsWith('FROM ')) + 1)
  return Object.assign(
    {},
    ...stage.map((line) => {
      const [, name, text] = /^([A-Z]+)\s+(.*)$/.exec(line.trim()) ?? []
      if (!Object.hasOwn(INSTRUCTIONS, name)) throw new Error(`the image cannot follow this line of the Dockerfile: ${line}`)
      return INSTRUCTIONS[name](text)
    }),
  )
}
