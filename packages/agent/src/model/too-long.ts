/**
 * Recognises the refusal of a request that is longer than the window of the model, in the words of the services. Sources: the error texts in
 * the API references and public issue threads of OpenAI, Anthropic, Google, Mistral, Groq, xAI, Cohere, Amazon Bedrock, Moonshot, Qwen, vLLM,
 * llama.cpp, LM Studio, Ollama and Text Generation Inference.
 */

/** Codes and types of errors that mean nothing else. */
const NAMES =
  /^(?:exceed_context_size_error|request_too_large|string_above_max_length|tokens_limit_reached|model_max_prompt_tokens_exceeded|OutofContextError)$|context_?(?:length|window)_?exceeded/i

const WORDS = [
  // maximum context length is 8192 tokens; exceeds the available context size; context window exceeds limit; context length of only 4096
  // litellm.ContextWindowExceededError
  /\bcontext[ _-]?(?:length|window|size|limit)(?:\b|exceeded)/i,
  // prompt is too long: 210000 tokens > 200000 maximum; Input is too long for requested model; Input prompt is too big compared to KV size
  /\b(?:prompt|input|request|conversation|messages?)\b[^.]{0,40}\b(?:is|are|was) too (?:long|large|big)\b/i,
  // prompt tokens too long; Request too long
  /\b(?:prompt|input|request|messages?) (?:tokens? |length )?too (?:long|large|big)\b/i,
  // The decoder prompt (length 5000) is longer than the maximum model length of 4096
  /\b(?:prompt|input)\b[^.]{0,40}\blonger than the maximum\b/i,
  // Prompt length 5000 is greater than max_seq_len 4096; max_seq_len (4096) - splited_prompt_len (4196)
  /\bmax_seq_len\b/i,
  // The input token count (1048577) exceeds the maximum number of tokens allowed (1048575)
  /\btoken (?:count|limit)\b[^.]{0,80}\bexceed/i,
  // Your request exceeded model token limit: 8192; exceeds the maximum number of tokens
  /\bexceed[a-z]*\b[^.]{0,40}\btoken/i,
  // Input tokens 50000 exceeds the model limit 32768
  /\b(?:prompt|input) tokens\b[^.]{0,40}\bexceed/i,
  // Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length
  /\btokens\b[^.]{0,40}\btoo large for model\b/i,
  // This model's maximum prompt length is 131072 but the request contains 537812 tokens; Prompt exceeds max length
  /\b(?:max(?:imum)? (?:prompt|input)|prompt exceeds max(?:imum)?) length\b/i,
  // too many tokens: size limit exceeded by 1234 tokens
  /\btoo many (?:input |prompt )?tokens\b/i,
  // Please reduce the length of the messages or completion
  // Reduce the input token count and try again
  /\breduce (?:the length|your prompt|the input token count)\b/i,
  // inputs tokens + max_new_tokens must be <= 4097; inputs must have less than 4096 tokens
  /\bmust (?:be <= ?\d|have less than \d+ tokens)/i,
  // Range of input length should be [1, 30720]
  /\brange of input length\b/i,
  // Input length 131073 exceeds the maximum length 131072; the length of messages exceeds the limit
  /\b(?:prompt|input|conversation|messages?) length\b[^.]{0,40}\bexceed/i,
  /\blength of (?:the )?(?:prompt|input|conversation|messages?)\b[^.]{0,40}\bexceed/i,
  // Unable to submit request because it has 1100000 tokens, but the model accepts up to 1048576
  /\bhas \d[\d,]{0,12} tokens\b[^.]{0,40}\b(?:supports|accepts|allows)\b/i,
  // max_tokens must be at least 1, got -904: the prompt leaves less than no room
  /\bmax_tokens must be at least 1, got -\d/i,
  // Prompt 超长; 超出模型最大上下文长度
  /(?:上下文|输入|提示词|prompt)[^。]{0,12}(?:超长|过长|超限|超出|超过)/i,
  /(?:超出|超过)[^。]{0,12}(?:上下文|输入长度)/,
]

/** A limit of the bytes of a request, which some services report without status 413. */
const BYTES = /\bpayload size exceeds the limit\b/i

/** One request above the limit of a minute, which no later time takes: Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 45000 */
const ABOVE_RATE = /\brequest too large for\b/i

/** The status of a request that is too large, whatever the words are. */
const TOO_LARGE = 413

/** The statuses of refusals that are known by their words. A 429 or 503 that speaks of tokens is a limit of a minute. */
const STATUSES: ReadonlySet<number | undefined> = new Set([400, 404, 422, 500, 502, undefined])

/** Whether a request is refused for its bytes and not for its tokens, so that the reason may be a file in it. */
export const isTooBig = ({ message, status }: { readonly message: string; readonly status: number | undefined }): boolean =>
  (status === TOO_LARGE || BYTES.test(message)) && ![ABOVE_RATE, ...WORDS].some((words) => words.test(message))

/** `name` is the code or type of the error, `status` its HTTP status; both may be absent. */
export const isTooLong = ({ name, message, status }: { name: string; message: string; status: number | undefined }): boolean =>
  NAMES.test(name) ||
  status === TOO_LARGE ||
  ABOVE_RATE.test(message) ||
  (STATUSES.has(status) && [BYTES, ...WORDS].some((words) => words.test(message)))

/** Numbers of tokens, also as `131,072`, except in the names of models and requests. */
const TOKENS = /(?<![\w.-])(?:\d{1,3}(?:,\d{3})+|\d{3,8})(?!\w)/g
/** Refusals that name the length of the input and the tokens that are kept free for the output. */
const SUMS = [
  // Anthropic: input length and `max_tokens` exceed context limit: 190000 + 64000 > 200000
  /(?<input>\d{1,8}) \+ (?<output>\d{1,8}) > (?<window>\d{1,8})/,
  // OpenAI: maximum context length is 8192 tokens. However, you requested 10000 tokens (6000 in the messages, 4000 in the completion)
  // vLLM and earlier models of OpenAI: However, you requested 4353 tokens (253 in your prompt; 4100 for the completion)
  /context length is (?<window>\d{1,8}) tokens\b[^(]{0,80}\((?<input>\d{1,8}) in (?:the|your) (?:messages|prompt)[^\d)]{1,40}(?<output>\d{1,8}) (?:in|for) the completion/,
  // vLLM: maximum context length is 8192 tokens and your request has 7000 input tokens (2000 > 8192 - 7000)
  /\((?<output>\d{1,8}) > (?<window>\d{1,8}) - (?<input>\d{1,8})\)/,
]
/** A prompt that is asked again is this much shorter than the refusal allows, because tokens are estimated. */
const MARGIN = 0.9
/** The part of a prompt that is asked again where a refusal names no numbers. */
const HALF = 0.5

/**
 * Returns the part of the refused prompt that fits, between 0 and 1: the window minus the output, by the length of the input, or
 * the smaller of the two numbers in the refusal by the larger one if it names the window and the length of the request.
 */
export function partThatFits(message: string): number {
  const sum = SUMS.map((words) => words.exec(message)?.groups).find((groups) => groups !== undefined)
  if (sum) return asPart((Number(sum.window) - Number(sum.output)) / Number(sum.input))
  const numbers = [...message.matchAll(TOKENS)].map(([text]) => Number(text.replaceAll(',', ''))).filter((tokens) => tokens >= 256)
  const [window, length] = [Math.min(...numbers), Math.max(...numbers)]
  return numbers.length > 1 ? asPart(window / length) : HALF
}

const asPart = (part: number): number => (part > 0.05 && part < 1 ? part * MARGIN : HALF)
