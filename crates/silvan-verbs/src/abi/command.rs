use super::layout::Layout;
use super::structures::*;
use crate::errno::Errno;

/// Length of the header of a command.
pub const HEADER: usize = CommandHeader::SIZE;

const EXTENDED: u32 = 0x8000_0000;

const UNKNOWN: u32 = 41;

/// Declares the commands with their numbers, structures, and minimal length of the response.
macro_rules! commands {
    ($($(#[$meta:meta])* $name:ident = $number:literal, $response:expr;)*) => {
        /// A command without the lists of work requests.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Command {
            $($(#[$meta])* $name($name),)*
            /// POST_SEND.
            PostSend(PostSend, Vec<PostedSend>),
            /// POST_RECV.
            PostRecv(PostRecv, Vec<(ReceiveWr, Vec<Sge>)>),
            /// POST_SRQ_RECV.
            PostSrqRecv(PostSrqRecv, Vec<(ReceiveWr, Vec<Sge>)>),
        }

        fn parse_plain(header: &CommandHeader, body: &[u8]) -> Result<Command, Errno> {
            let room = usize::from(header.out_words) * 4;
            match header.command {
                $($number => {
                    let structure = $name::parse(body).ok_or(Errno::NoSpace)?;
                    check_room(room, $response)?;
                    Ok(Command::$name(structure))
                })*
                UNKNOWN.. => Err(Errno::Invalid),
                _ => Err(Errno::NotSupported),
            }
        }

        fn emit_plain(command: &Command) -> (u32, Vec<u8>, usize) {
            match command {
                $(Command::$name(structure) => ($number, structure.to_bytes(), $response),)*
                Command::PostSend(post, requests) => {
                    let mut bytes = post.to_bytes();
                    for request in requests {
                        request.0.write(&mut bytes);
                    }
                    for element in requests.iter().flat_map(|request| &request.1) {
                        element.write(&mut bytes);
                    }
                    (POST_SEND, bytes, PostSendResponse::SIZE)
                }
                Command::PostRecv(post, requests) => {
                    (POST_RECV, emit_receives(post.to_bytes(), requests), PostRecvResponse::SIZE)
                }
                Command::PostSrqRecv(post, requests) => {
                    (POST_SRQ_RECV, emit_receives(post.to_bytes(), requests), PostSrqRecvResponse::SIZE)
                }
            }
        }
    };
}

const POST_SEND: u32 = 28;
const POST_RECV: u32 = 29;
const POST_SRQ_RECV: u32 = 36;

/// A send work request with its elements.
pub type PostedSend = (SendWr, Vec<Sge>);

commands! {
    /// Number 0.
    GetContext = 0, GetContextResponse::SIZE;
    /// Number 1.
    QueryDevice = 1, QueryDeviceResponse::SIZE;
    /// Number 2.
    QueryPort = 2, QueryPortResponse::SIZE;
    /// Number 3.
    AllocPd = 3, AllocPdResponse::SIZE;
    /// Number 4.
    DeallocPd = 4, 0;
    /// Number 5.
    CreateAh = 5, CreateAhResponse::SIZE;
    /// Number 8.
    DestroyAh = 8, 0;
    /// Number 9.
    RegMr = 9, RegMrResponse::SIZE;
    /// Number 13.
    DeregMr = 13, 0;
    /// Number 17.
    CreateCompChannel = 17, CreateCompChannelResponse::SIZE;
    /// Number 18.
    CreateCq = 18, CreateCqResponse::SIZE;
    /// Number 19; the kernel's response may lack the reserved field.
    ResizeCq = 19, 4;
    /// Number 20.
    DestroyCq = 20, DestroyCqResponse::SIZE;
    /// Number 21.
    PollCq = 21, PollCqResponse::SIZE;
    /// Number 23.
    ReqNotifyCq = 23, 0;
    /// Number 24.
    CreateQp = 24, CreateQpResponse::SIZE;
    /// Number 25.
    QueryQp = 25, QueryQpResponse::SIZE;
    /// Number 26.
    ModifyQp = 26, 0;
    /// Number 27.
    DestroyQp = 27, DestroyQpResponse::SIZE;
    /// Number 30.
    AttachMcast = 30, 0;
    /// Number 31.
    DetachMcast = 31, 0;
    /// Number 32.
    CreateSrq = 32, CreateSrqResponse::SIZE;
    /// Number 33.
    ModifySrq = 33, 0;
    /// Number 34.
    QuerySrq = 34, QuerySrqResponse::SIZE;
    /// Number 35.
    DestroySrq = 35, DestroySrqResponse::SIZE;
}

/// Reads a command's header: EINVAL if its length is wrong, EOPNOTSUPP for extended commands.
pub fn header(bytes: &[u8]) -> Result<CommandHeader, Errno> {
    let header = CommandHeader::parse(bytes).ok_or(Errno::Invalid)?;
    if header.command & EXTENDED != 0 {
        return Err(Errno::NotSupported);
    }
    if usize::from(header.in_words) * 4 != bytes.len() {
        return Err(Errno::Invalid);
    }
    Ok(header)
}

fn check_room(room: usize, response: usize) -> Result<(), Errno> {
    match room < response {
        true => Err(Errno::NoSpace),
        false => Ok(()),
    }
}

macro_rules! counts {
    ($post:ident) => {
        (&mut $post.sge_count, &mut $post.wqe_size, $post.wr_count)
    };
}

/// Reads a command; bytes behind its structure are driver data. Errors as the kernel's: ENOSPC, EINVAL, EOPNOTSUPP.
pub fn parse(bytes: &[u8]) -> Result<Command, Errno> {
    let header = header(bytes)?;
    let body = &bytes[HEADER..];
    let room = usize::from(header.out_words) * 4;
    let work = |length: usize| match body.len() < length || room < 4 {
        true => Err(Errno::NoSpace),
        false => Ok(&body[length..]),
    };
    match header.command {
        POST_SEND => {
            let lists = work(PostSend::SIZE)?;
            let mut post = PostSend::parse(body).ok_or(Errno::NoSpace)?;
            let requests = parse_lists(lists, counts!(post), |request: &SendWr| request.num_sge)?;
            Ok(Command::PostSend(post, requests))
        }
        POST_RECV => {
            let lists = work(PostRecv::SIZE)?;
            let mut post = PostRecv::parse(body).ok_or(Errno::NoSpace)?;
            let requests =
                parse_lists(lists, counts!(post), |request: &ReceiveWr| request.num_sge)?;
            Ok(Command::PostRecv(post, requests))
        }
        POST_SRQ_RECV => {
            let lists = work(PostSrqRecv::SIZE)?;
            let mut post = PostSrqRecv::parse(body).ok_or(Errno::NoSpace)?;
            let requests =
                parse_lists(lists, counts!(post), |request: &ReceiveWr| request.num_sge)?;
            Ok(Command::PostSrqRecv(post, requests))
        }
        _ => parse_plain(&header, body),
    }
}

/// Reads `wr_count` requests of `wqe_size` bytes and `sge_count` elements. Counts then state what was read.
fn parse_lists<T: Layout>(
    lists: &[u8],
    (sge_count, wqe_size, wr_count): (&mut u32, &mut u32, u32),
    elements_of: impl Fn(&T) -> u32,
) -> Result<Vec<(T, Vec<Sge>)>, Errno> {
    let (count, size) = (wr_count as usize, *wqe_size as usize);
    if size < T::SIZE {
        return Err(Errno::Invalid);
    }
    let requests_length = count.checked_mul(size).ok_or(Errno::Invalid)?;
    let elements_length = (*sge_count as usize)
        .checked_mul(Sge::SIZE)
        .ok_or(Errno::Invalid)?;
    let length = requests_length
        .checked_add(elements_length)
        .ok_or(Errno::Invalid)?;
    if lists.len() < length {
        return Err(Errno::Invalid);
    }
    let mut elements = lists[requests_length..length].chunks_exact(Sge::SIZE);
    let mut requests = Vec::with_capacity(count);
    let mut used = 0;
    for bytes in lists[..requests_length].chunks_exact(size) {
        let request = T::parse(bytes).ok_or(Errno::Invalid)?;
        let own = elements_of(&request);
        if own as usize > elements.len() {
            return Err(Errno::Invalid);
        }
        used += own;
        let own = elements.by_ref().take(own as usize);
        let own = own.filter_map(Sge::parse).collect();
        requests.push((request, own));
    }
    (*sge_count, *wqe_size) = (used, T::SIZE as u32);
    Ok(requests)
}

fn emit_receives(mut bytes: Vec<u8>, requests: &[(ReceiveWr, Vec<Sge>)]) -> Vec<u8> {
    for request in requests {
        request.0.write(&mut bytes);
    }
    for element in requests.iter().flat_map(|request| &request.1) {
        element.write(&mut bytes);
    }
    bytes
}

/// Writes a command as a program's library does; the header cuts lengths beyond 262,140 bytes.
pub fn emit(command: &Command) -> Vec<u8> {
    let (number, body, response) = emit_plain(command);
    let response = match command {
        Command::PollCq(poll) => response + poll.ne as usize * WorkCompletion::SIZE,
        _ => response,
    };
    let header = CommandHeader {
        command: number,
        in_words: ((HEADER + body.len()) / 4) as u16,
        out_words: (response / 4).min(usize::from(u16::MAX)) as u16,
    };
    let mut bytes = header.to_bytes();
    bytes.extend_from_slice(&body);
    bytes
}
